package body

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// str skips the string at i.
func (r *scanner) str() bool {
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
			if r.dirty = true; !r.repair {
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

// plain skips ASCII without special characters, eight bytes at a time. The
// highest bit of a byte in special marks a special character; the lowest marked
// byte is never a false positive.
func (r *scanner) plain() {
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

// wide skips characters beyond ASCII.
func (r *scanner) wide() bool {
	for r.i < len(r.b) && r.b[r.i] >= utf8.RuneSelf {
		c, n := utf8.DecodeRune(r.b[r.i:])
		if c == utf8.RuneError && n == 1 {
			if r.dirty = true; !r.repair {
				return r.fail("it is not UTF-8")
			}
		}
		r.i += n
	}
	return true
}

// escape skips an escape, or two that make a surrogate pair.
func (r *scanner) escape() bool {
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

// escapedUnit returns the unit of the escape at the start of b, or -1.
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
