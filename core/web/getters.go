package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

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

// String reads a text, without the white space around it; a number counts as
// its digits.
func (f *Fields) String(name string, rs ...Rule) Opt[string] {
	raw, r, o := get[string](f, name, rs)
	if raw == nil {
		return o
	}
	switch raw[0] {
	case '"':
		o.Value = unquote(raw)
	case '{', '[', 't', 'f':
		f.Fail(name, "invalid_input", "Not a valid string.")
		return o
	default:
		o.Value = string(raw)
	}
	if !r.untrimmed {
		o.Value = strings.TrimSpace(o.Value)
	}
	f.checkText(name, raw, o.Value, r)
	return o
}

func (f *Fields) checkText(name string, raw []byte, s string, r rules) {
	switch {
	case s == "" && !r.blank:
		f.Fail(name, "blank", "This field may not be blank.")
	case strings.IndexByte(s, 0) >= 0:
		f.Fail(name, "null_characters_not_allowed", "Null characters are not allowed.")
	case halfPair(raw):
		f.Fail(name, "surrogate_characters_not_allowed", "Surrogate characters are not allowed.")
	case r.hasMax && int64(utf8.RuneCountInString(s)) > r.max:
		f.Fail(name, "max_length", fmt.Sprintf("Ensure this field has no more than %d characters.", r.max))
	case r.choices != nil && !contains(r.choices, s):
		f.Fail(name, "invalid_choice", fmt.Sprintf("%q is not a valid choice.", s))
	}
}

// halfPair reports whether the text holds an escape that is half a pair.
func halfPair(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		switch u := hex4(raw[i+1:]); {
		case isHigh(u) && isLow(escapedUnit(raw[i+5:])):
			i += 6
		case isHigh(u) || isLow(u):
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, c := range list {
		if c == s {
			return true
		}
	}
	return false
}

// Bool reads a truth value, also as the words and numbers that forms have.
func (f *Fields) Bool(name string, rs ...Rule) Opt[bool] {
	raw, _, o := get[bool](f, name, rs)
	if raw == nil {
		return o
	}
	word := string(raw)
	if raw[0] == '"' {
		word = unquote(raw)
	}
	switch strings.ToLower(word) {
	case "true", "t", "yes", "y", "on", "1":
		o.Value = true
	case "false", "f", "no", "n", "off", "0":
	default:
		f.Fail(name, "invalid_input", "Must be a valid boolean.")
	}
	return o
}

// Int reads a whole number, also one in quotes or with a fraction of zero.
func (f *Fields) Int(name string, rs ...Rule) Opt[int64] {
	raw, r, o := get[int64](f, name, rs)
	if raw == nil {
		return o
	}
	s := string(raw)
	if raw[0] == '"' {
		s = strings.TrimSpace(unquote(raw))
	}
	if whole, zeros, ok := strings.Cut(s, "."); ok && zeros != "" && strings.Trim(zeros, "0") == "" {
		s = whole
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		f.Fail(name, "invalid_input", "A valid integer is required.")
		return o
	case r.hasMax && n > r.max:
		f.Fail(name, "max_value", fmt.Sprintf("Ensure this value is less than or equal to %d.", r.max))
	case r.hasMin && n < r.min:
		f.Fail(name, "min_value", fmt.Sprintf("Ensure this value is greater than or equal to %d.", r.min))
	}
	o.Value = n
	return o
}

// Number reads any number, also one in quotes.
func (f *Fields) Number(name string, rs ...Rule) Opt[float64] {
	raw, r, o := get[float64](f, name, rs)
	if raw == nil {
		return o
	}
	s := string(raw)
	if raw[0] == '"' {
		s = strings.TrimSpace(unquote(raw))
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
		f.Fail(name, "invalid_input", "A valid number is required.")
		return o
	case r.hasMax && n > float64(r.max):
		f.Fail(name, "max_value", fmt.Sprintf("Ensure this value is less than or equal to %d.", r.max))
	case r.hasMin && n < float64(r.min):
		f.Fail(name, "min_value", fmt.Sprintf("Ensure this value is greater than or equal to %d.", r.min))
	}
	o.Value = n
	return o
}

// Time reads a moment, with or without a zone (without one it is UTC), to the
// microsecond.
func (f *Fields) Time(name string, rs ...Rule) Opt[time.Time] {
	raw, _, o := get[time.Time](f, name, rs)
	if raw == nil {
		return o
	}
	if raw[0] == '"' {
		s := strings.TrimSpace(unquote(raw))
		for _, form := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
			if t, err := time.Parse(form, s); err == nil {
				o.Value = t.UTC().Truncate(time.Microsecond)
				return o
			}
		}
	}
	f.Fail(name, "invalid_input", "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].")
	return o
}

// UUID reads a UUID, in lower case and with dashes.
func (f *Fields) UUID(name string, rs ...Rule) Opt[string] {
	raw, _, o := get[string](f, name, rs)
	if raw == nil {
		return o
	}
	if raw[0] == '"' {
		if id, ok := canonicalUUID(unquote(raw)); ok {
			o.Value = id
			return o
		}
	}
	f.Fail(name, "invalid_input", "Must be a valid UUID.")
	return o
}

// Any reads whatever is there, as JSON text. In a form it may be JSON in
// text; a text that is no JSON is itself.
func (f *Fields) Any(name string, rs ...Rule) Opt[json.RawMessage] {
	raw, _, o := get[json.RawMessage](f, name, rs)
	if raw != nil {
		o.Value = f.inner(raw)
	}
	return o
}

// Object reads a JSON object, as text.
func (f *Fields) Object(name string, rs ...Rule) Opt[json.RawMessage] {
	raw, _, o := get[json.RawMessage](f, name, rs)
	if raw == nil {
		return o
	}
	if raw = f.inner(raw); raw[0] != '{' {
		f.Fail(name, "not_a_dict", fmt.Sprintf("Expected a dictionary of items but got type %q.", typeName(raw)))
		return o
	}
	o.Value = raw
	return o
}

// List reads a list, each item as JSON text. A field that a form repeats is a
// list of texts.
func (f *Fields) List(name string, rs ...Rule) Opt[[]json.RawMessage] {
	raw, r, o := get[[]json.RawMessage](f, name, rs)
	if raw == nil {
		return o
	}
	raw = f.inner(raw)
	switch {
	case raw[0] == '[':
		o.Value = elements(raw)
	case f.form:
		for _, s := range f.lists[name] {
			o.Value = append(o.Value, appendQuoted(nil, s))
		}
	default:
		f.Fail(name, "not_a_list", fmt.Sprintf("Expected a list of items but got type %q.", typeName(raw)))
		return o
	}
	if r.hasMax && int64(len(o.Value)) > r.max {
		f.Fail(name, "max_length", fmt.Sprintf("Ensure this field has no more than %d elements.", r.max))
	}
	return o
}

// Strings reads a list of texts. An item that is none fails with its index in
// the name.
func (f *Fields) Strings(name string, rs ...Rule) Opt[[]string] {
	list := f.List(name, rs...)
	o := Opt[[]string]{Set: list.Set, Null: list.Null}
	for i, raw := range list.Value {
		item := f.nest(fmt.Sprintf("%s__%d", name, i))
		item.raw[""] = raw
		o.Value = append(o.Value, item.String("", Blank).Value)
	}
	return o
}

// Ints reads a list of whole numbers.
func (f *Fields) Ints(name string, rs ...Rule) Opt[[]int64] {
	list := f.List(name, rs...)
	o := Opt[[]int64]{Set: list.Set, Null: list.Null}
	for i, raw := range list.Value {
		item := f.nest(fmt.Sprintf("%s__%d", name, i))
		item.raw[""] = raw
		o.Value = append(o.Value, item.Int("").Value)
	}
	return o
}

// Sub reads an object whose fields are read one by one: what is wrong in them
// is named name__field. The Fields are empty when there is no such object.
func (f *Fields) Sub(name string, rs ...Rule) Opt[*Fields] {
	object := f.Object(name, rs...)
	o := Opt[*Fields]{Set: object.Set, Null: object.Null, Value: f.nest(name + "__")}
	if object.Value != nil {
		o.Value.split(object.Value)
	}
	return o
}

// Items reads a list of objects whose fields are read one by one: what is
// wrong in them is named name__index__field.
func (f *Fields) Items(name string, rs ...Rule) Opt[[]*Fields] {
	list := f.List(name, rs...)
	o := Opt[[]*Fields]{Set: list.Set, Null: list.Null}
	for i, raw := range list.Value {
		item := f.nest(fmt.Sprintf("%s__%d__", name, i))
		if raw = f.inner(raw); raw[0] == '{' {
			item.split(raw)
		} else {
			f.Fail(fmt.Sprintf("%s__%d", name, i), "invalid_input", fmt.Sprintf("Invalid data. Expected a dictionary, but got %s.", typeName(raw)))
		}
		o.Value = append(o.Value, item)
	}
	return o
}

func (f *Fields) nest(path string) *Fields {
	return &Fields{raw: map[string]json.RawMessage{}, form: f.form, path: f.path + path, err: f.err}
}

// inner is the JSON in a text, for forms, where everything is text.
func (f *Fields) inner(raw []byte) []byte {
	if !f.form || raw[0] != '"' {
		return raw
	}
	in := bytes.TrimSpace([]byte(unquote(raw)))
	if r := (textReader{b: in, depth: maxJSONDepth}); r.check() {
		return in
	}
	return raw
}

// elements splits a list that is known to be right.
func elements(list []byte) []json.RawMessage {
	out := []json.RawMessage{}
	r := textReader{b: list, depth: maxJSONDepth, mend: true, i: 1}
	for r.space(); !r.is(']'); r.space() {
		from := r.i
		r.value()
		out = append(out, list[from:r.i:r.i])
		r.space()
		r.is(',')
	}
	return out
}

// canonicalUUID accepts 32 hexadecimal digits with or without dashes.
func canonicalUUID(s string) (string, bool) {
	digits := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "-", ""))
	if len(digits) != 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", false
	}
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:], true
}
