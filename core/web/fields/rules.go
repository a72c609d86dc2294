package fields

// Opt is an optional field. The zero Opt is a missing one.
type Opt[T any] struct {
	Set   bool // it was sent
	Null  bool // it was null
	Value T    // zero if missing, null or invalid
}

// Or returns the value, or fallback if the field is missing or null.
func (o Opt[T]) Or(fallback T) T {
	if o.Set && !o.Null {
		return o.Value
	}
	return fallback
}

// Rule is a condition of a getter.
type Rule func(*Rules)

// Rules are the conditions of one getter.
type Rules struct {
	required, nullable, blank, untrimmed bool
	max, min                             int64
	hasMax, hasMin                       bool
	choices                              []string
}

// Required rejects a missing field.
func Required(r *Rules) { r.required = true }

// Nullable accepts null.
func Nullable(r *Rules) { r.nullable = true }

// Blank accepts an empty string.
func Blank(r *Rules) { r.blank = true }

// Untrimmed keeps the white space around a string.
func Untrimmed(r *Rules) { r.untrimmed = true }

// Max limits the characters of a string, the items of a list, or a number.
func Max(n int64) Rule { return func(r *Rules) { r.max, r.hasMax = n, true } }

// Min limits a number from below.
func Min(n int64) Rule { return func(r *Rules) { r.min, r.hasMin = n, true } }

// OneOf accepts only these strings.
func OneOf(choices ...string) Rule { return func(r *Rules) { r.choices = choices } }

// get returns a field after the checks that all types share. A nil raw means that
// there is no value to read.
func get[T any](f *Fields, name string, rs []Rule) (raw []byte, r Rules, o Opt[T]) {
	for _, rule := range rs {
		rule(&r)
	}
	f.read[name] = true
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
