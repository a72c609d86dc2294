package web

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// textReader walks JSON strictly, once, without building anything. It is how
// Body can promise valid JSON: the readers behind it are faster because they
// believe a good deal (one of them takes 1-2 for a number).
//
// With mend set it takes a few liberties and remembers them in dirty, so that
// mend can put them right: NaN and Infinity, raw control characters, bytes
// that are not UTF-8, escapes that no store can hold. Without mend they are
// errors, as for any other JSON.
type textReader struct {
	b     []byte
	i     int
	depth int // levels still allowed
	mend  bool
	dirty bool
	why   string // set on failure, with i at the place
}

// check reads the one value that b has to be.
func (r *textReader) check() bool {
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

func (r *textReader) fail(why string) bool {
	if r.why == "" {
		r.why = why
	}
	return false
}

// problem is what fail said, with the place.
func (r *textReader) problem() string { return fmt.Sprintf("%s (byte %d)", r.why, r.i) }

func (r *textReader) space() {
	for r.i < len(r.b) && r.b[r.i] <= ' ' && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\r' || r.b[r.i] == '\t') {
		r.i++
	}
}

// value reads one value that starts right here.
func (r *textReader) value() bool {
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
		return r.odd()
	default:
		if c == '-' || (c >= '0' && c <= '9') {
			return r.number()
		}
	}
	return r.fail("a value was expected")
}

func (r *textReader) members() bool {
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

func (r *textReader) items() bool {
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

// is steps over c when it comes next.
func (r *textReader) is(c byte) bool {
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *textReader) word(w string) bool {
	if len(r.b)-r.i < len(w) || string(r.b[r.i:r.i+len(w)]) != w {
		return r.fail("a value was expected")
	}
	r.i += len(w)
	return true
}

// odd reads the numbers that JSON does not have and some writers use.
func (r *textReader) odd() bool {
	if !r.mend {
		return r.fail("a value was expected")
	}
	r.dirty = true
	if r.b[r.i] == 'N' {
		return r.word("NaN")
	}
	return r.word("Infinity")
}

func (r *textReader) number() bool {
	if r.is('-') && r.i < len(r.b) && r.b[r.i] == 'I' {
		return r.odd()
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

func (r *textReader) digits() bool {
	start := r.i
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 {
		r.i++
	}
	return r.i > start
}

// str reads a string that starts right here.
func (r *textReader) str() bool {
	r.i++
	for {
		r.plain()
		if r.i >= len(r.b) {
			return r.fail("a text has no end")
		}
		switch c := r.b[r.i]; {
		case c == '"':
			r.i++
			return true
		case c == '\\':
			if !r.escape() {
				return false
			}
		case c < ' ':
			if r.dirty = true; !r.mend {
				return r.fail("a control character in a text was expected to be escaped")
			}
			r.i++
		default:
			if !r.wide() {
				return false
			}
		}
	}
}

// plain steps over ASCII that means itself, eight bytes at a time: a byte of
// the word is special when its highest bit is set in the end, and the lowest
// one that is set is never set by mistake.
func (r *textReader) plain() {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	b, i := r.b, r.i
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		special := (quote - ones) &^ quote
		special |= (slash - ones) &^ slash
		special |= (w - ones*' ') &^ w
		if special = (special | w) & highs; special != 0 {
			r.i = i + bits.TrailingZeros64(special)>>3
			return
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
		i++
	}
	r.i = i
}

// wide steps over characters beyond ASCII.
func (r *textReader) wide() bool {
	for r.i < len(r.b) && r.b[r.i] >= utf8.RuneSelf {
		c, n := utf8.DecodeRune(r.b[r.i:])
		if c == utf8.RuneError && n == 1 {
			if r.dirty = true; !r.mend {
				return r.fail("it is not UTF-8")
			}
		}
		r.i += n
	}
	return true
}

// escape steps over an escape, or over two when they make a pair.
func (r *textReader) escape() bool {
	if r.i+1 >= len(r.b) {
		return r.fail("a text has no end")
	}
	switch r.b[r.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.i += 2
		return true
	case 'u':
	default:
		return r.fail("an escape is unknown")
	}
	u := hex4(r.b[r.i+2:])
	if u < 0 {
		return r.fail("an escape is broken")
	}
	switch {
	case isHigh(u) && isLow(escapedUnit(r.b[r.i+6:])):
		r.i += 6
	case u == 0 || isHigh(u) || isLow(u):
		r.dirty = true
	}
	r.i += 6
	return true
}

// escapedUnit returns the unit of an escape that b starts with, or -1.
func escapedUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	return hex4(b[2:])
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var n rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return n
}

func isHigh(u rune) bool { return u >= 0xd800 && u < 0xdc00 }
func isLow(u rune) bool  { return u >= 0xdc00 && u < 0xe000 }
