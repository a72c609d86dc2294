package body

import "fmt"

// scanner checks JSON strictly in one pass without allocating. The parsers
// behind it are faster because they check less (one of them accepts 1-2 as a
// number), so Decode checks first.
//
// With repair set it accepts what appendSanitized can repair, and sets dirty:
// NaN and Infinity, raw control characters, bytes that are not UTF-8, escapes
// that no database accepts. Without repair they are errors.
type scanner struct {
	b      []byte
	i      int
	depth  int // levels still allowed
	repair bool
	dirty  bool
	why    string // set on failure; i is its position
}

// check checks that b is one value.
func (r *scanner) check() bool {
	r.space()
	if r.i == len(r.b) {
		return r.fail("there is nothing in it")
	}
	if !r.value() {
		return false
	}
	if r.space(); r.i < len(r.b) {
		return r.fail("there is more after the end")
	}
	return true
}

func (r *scanner) fail(why string) bool {
	if r.why == "" {
		r.why = why
	}
	return false
}

// problem returns the failure and its position.
func (r *scanner) problem() string { return fmt.Sprintf("%s (byte %d)", r.why, r.i) }

func (r *scanner) space() {
	for r.i < len(r.b) && r.b[r.i] <= ' ' && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\r' || r.b[r.i] == '\t') {
		r.i++
	}
}

// value skips the value at i.
func (r *scanner) value() bool {
	if r.i >= len(r.b) {
		return r.fail("it ends in the middle")
	}
	switch c := r.b[r.i]; c {
	case '{':
		return r.members()
	case '[':
		return r.items()
	case '"':
		return r.str()
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	case 'N', 'I':
		return r.nonFinite()
	default:
		if c == '-' || (c >= '0' && c <= '9') {
			return r.number()
		}
	}
	return r.fail("a value was expected")
}

func (r *scanner) members() bool {
	if r.depth--; r.depth < 0 {
		return r.fail("it is nested too deeply")
	}
	r.i++
	r.space()
	if r.is('}') {
		r.depth++
		return true
	}
	for {
		if r.i >= len(r.b) || r.b[r.i] != '"' {
			return r.fail("a name in quotes was expected")
		}
		if !r.str() {
			return false
		}
		if r.space(); !r.is(':') {
			return r.fail("a colon was expected")
		}
		if r.space(); !r.value() {
			return false
		}
		if r.space(); r.is(',') {
			r.space()
			continue
		}
		if r.is('}') {
			r.depth++
			return true
		}
		return r.fail("a comma or the end of the object was expected")
	}
}

func (r *scanner) items() bool {
	if r.depth--; r.depth < 0 {
		return r.fail("it is nested too deeply")
	}
	r.i++
	r.space()
	if r.is(']') {
		r.depth++
		return true
	}
	for {
		if !r.value() {
			return false
		}
		if r.space(); r.is(',') {
			r.space()
			continue
		}
		if r.is(']') {
			r.depth++
			return true
		}
		return r.fail("a comma or the end of the list was expected")
	}
}

// is skips c and reports whether it was next.
func (r *scanner) is(c byte) bool {
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *scanner) word(w string) bool {
	if len(r.b)-r.i < len(w) || string(r.b[r.i:r.i+len(w)]) != w {
		return r.fail("a value was expected")
	}
	r.i += len(w)
	return true
}

// nonFinite skips the numbers that JSON does not have and some writers use.
func (r *scanner) nonFinite() bool {
	if !r.repair {
		return r.fail("a value was expected")
	}
	r.dirty = true
	if r.b[r.i] == 'N' {
		return r.word("NaN")
	}
	return r.word("Infinity")
}

func (r *scanner) number() bool {
	if r.is('-') && r.i < len(r.b) && r.b[r.i] == 'I' {
		return r.nonFinite()
	}
	if !r.is('0') && !r.digits() {
		return r.fail("a digit was expected")
	}
	if r.is('.') && !r.digits() {
		return r.fail("a digit was expected")
	}
	if r.is('e') || r.is('E') {
		if !r.is('+') {
			r.is('-')
		}
		if !r.digits() {
			return r.fail("a digit was expected")
		}
	}
	return true
}

func (r *scanner) digits() bool {
	start := r.i
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 {
		r.i++
	}
	return r.i > start
}
