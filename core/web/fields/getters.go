package fields

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/jsontext"
)

// String reads a string without surrounding white space; a number counts as its
// digits.
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

func (f *Fields) checkText(name string, raw []byte, s string, r Rules) {
	switch {
	case s == "" && !r.blank:
		f.Fail(name, "blank", "This field may not be blank.")
	case strings.IndexByte(s, 0) >= 0:
		f.Fail(name, "null_characters_not_allowed", "Null characters are not allowed.")
	case jsontext.HasLoneSurrogate(raw):
		f.Fail(name, "surrogate_characters_not_allowed", "Surrogate characters are not allowed.")
	case r.hasMax && int64(utf8.RuneCountInString(s)) > r.max:
		f.Fail(name, "max_length", fmt.Sprintf("Ensure this field has no more than %d characters.", r.max))
	case r.choices != nil && !slices.Contains(r.choices, s):
		f.Fail(name, "invalid_choice", fmt.Sprintf("%q is not a valid choice.", s))
	}
}

// Bool reads a boolean, also as a word or number of a form.
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

// Int reads an integer, also in quotes or with a fraction of zero.
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

// Number reads a number, also in quotes.
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

// Time reads a time to the microsecond. Without a zone it is UTC.
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

// UUID reads a UUID and returns it in lower case with dashes.
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

// canonicalUUID accepts 32 hexadecimal digits with or without dashes.
func canonicalUUID(s string) (string, bool) {
	digits := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "-", ""))
	if len(digits) != 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", false
	}
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:], true
}
