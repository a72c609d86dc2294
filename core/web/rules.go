package web

// Opt is a field that may be missing. The zero Opt is.
type Opt[T any] struct {
	Set   bool // it was in the body
	Null  bool // it was null
	Value T    // the zero value unless it was there and neither null nor wrong
}

// Or returns the value, or fallback when the field is missing or null.
func (o Opt[T]) Or(fallback T) T {
	if o.Set && !o.Null {
		return o.Value
	}
	return fallback
}

// Rule is a condition on a field, given to a getter.
type Rule func(*rules)

type rules struct {
	required, nullable, blank, untrimmed bool
	max, min                             int64
	hasMax, hasMin                       bool
	choices                              []string
}

// Required fails the field when it is missing.
func Required(r *rules) { r.required = true }

// Nullable lets the field be null.
func Nullable(r *rules) { r.nullable = true }

// Blank lets a text be empty.
func Blank(r *rules) { r.blank = true }

// Untrimmed keeps the white space around a text.
func Untrimmed(r *rules) { r.untrimmed = true }

// Max limits the characters of a text, the items of a list, or a number.
func Max(n int64) Rule { return func(r *rules) { r.max, r.hasMax = n, true } }

// Min limits a number from below.
func Min(n int64) Rule { return func(r *rules) { r.min, r.hasMin = n, true } }

// OneOf lets a text be nothing but one of these.
func OneOf(choices ...string) Rule { return func(r *rules) { r.choices = choices } }

// get finds a field and settles what every type has in common. A nil raw
// means that there is no value to read.
func get[T any](f *Fields, name string, rs []Rule) (raw []byte, r rules, o Opt[T]) {
	for _, rule := range rs {
		rule(&r)
	}
	raw, o.Set = f.raw[name]
	switch {
	case !o.Set && r.required:
		f.Fail(name, "required", "This field is required.")
	case o.Set && string(raw) == "null":
		o.Null, raw = true, nil
		if !r.nullable {
			f.Fail(name, "null", "This field may not be null.")
		}
	}
	return raw, r, o
}
