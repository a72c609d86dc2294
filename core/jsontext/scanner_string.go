package jsontext

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// readString reads the string whose opening quote is at the cursor.
func (s *Scanner) readString() String {
	start := s.Pos + 1
	i := indexSpecial(s.Data, start)
	if i < len(s.Data) && s.Data[i] == '"' {
		s.Pos = i + 1
		return String{Raw: s.Data[start:i]}
	}
	end, escaped := s.findQuote(i)
	if end < 0 {
		return String{}
	}
	s.Pos = end + 1
	return String{Raw: s.Data[start:end], escaped: escaped}
}

// skipRest moves over the rest of a string from i on, where indexSpecial stopped.
func (s *Scanner) skipRest(i int) int {
	if i, _ = s.findQuote(i); i < 0 {
		return -1
	}
	return i + 1
}

// findQuote returns the offset of the quote that ends a string, and whether
// escapes precede it. indexSpecial stopped at i.
func (s *Scanner) findQuote(i int) (end int, escaped bool) {
	for data := s.Data; i < len(data); i = indexSpecial(data, i) {
		switch c := data[i]; {
		case c == '"':
			return i, escaped
		case c == '\\':
			n, storable := measureEscape(data[i:])
			if n == 0 {
				return s.failAt(i, escapeProblem(data[i:])), false
			}
			escaped, s.Dirty = true, s.Dirty || !storable
			i += n
		case c >= utf8.RuneSelf:
			var broken int
			if i, broken = skipNonASCII(data, i); broken >= 0 {
				if s.Dirty = true; s.Strict {
					return s.failAt(broken, "it is not UTF-8"), false
				}
			}
		default:
			if s.Dirty = true; s.Strict {
				return s.failAt(i, "a control character in a text was expected to be escaped"), false
			}
			i++
		}
	}
	return s.failAt(len(s.Data), textUnended), false
}

// escapeProblem describes the invalid escape sequence at the start of data.
func escapeProblem(data []byte) string {
	switch {
	case len(data) < 2:
		return textUnended
	case data[1] == 'u':
		return "an escape is broken"
	}
	return "an escape is unknown"
}

const textUnended = "a text has no end"

// skipNonASCII returns the offset of the next ASCII byte from i on, and that of
// the first byte before it that is not UTF-8, or -1. It reads the usual sequences
// of two and three bytes itself and leaves the rest to utf8.
func skipNonASCII(data []byte, i int) (next, broken int) {
	broken = -1
	for i < len(data) && data[i] >= utf8.RuneSelf {
		c, rest := data[i], data[i+1:]
		switch {
		case c >= 0xe1 && c < 0xf0 && c != 0xed && len(rest) > 1 && int8(rest[0]) < -0x40 && int8(rest[1]) < -0x40:
			i += 3
		case c >= 0xc2 && c < 0xe0 && len(rest) > 0 && int8(rest[0]) < -0x40:
			i += 2
		default:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 && broken < 0 {
				broken = i
			}
			i += n
		}
	}
	return i, broken
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// indexSpecial returns the first offset from i on at which data has a quote, a
// backslash, a control character or a byte outside ASCII. It compares eight
// bytes at a time.
func indexSpecial(data []byte, i int) int {
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		// The high bit of each special byte is set in stop. Bytes above the
		// first special one may be set by mistake, those below never are.
		stop := (w | (w - ones*0x20) | (quote - ones) | (slash - ones)) & highs
		if stop != 0 {
			return i + bits.TrailingZeros64(stop)>>3
		}
		i += 8
	}
	for i < len(data) {
		c := data[i]
		if c == '"' || c == '\\' || c < 0x20 || c >= 0x80 {
			return i
		}
		i++
	}
	return i
}
