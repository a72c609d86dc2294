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
	return s.readStringSlow(start, i)
}

// skipString moves over the string whose opening quote is at the cursor.
func (s *Scanner) skipString() {
	i := indexSpecial(s.Data, s.Pos+1)
	if i < len(s.Data) && s.Data[i] == '"' {
		s.Pos = i + 1
		return
	}
	s.readStringSlow(s.Pos+1, i)
}

// readStringSlow continues at i, where a special byte other than the closing
// quote is.
func (s *Scanner) readStringSlow(start, i int) (t String) {
	for data := s.Data; i < len(data); i = indexSpecial(data, i) {
		switch c := data[i]; {
		case c == '"':
			s.Pos = i + 1
			t.Raw = data[start:i]
			return t
		case c == '\\':
			t.escaped = true
			n, storable := measureEscape(data[i:])
			if n == 0 {
				return s.failString(i, escapeProblem(data[i:]))
			}
			s.Dirty = s.Dirty || !storable
			i += n
		case c >= utf8.RuneSelf:
			next, ok := skipNonASCII(data, i)
			if !ok {
				if s.Dirty = true; s.Strict {
					return s.failString(indexInvalid(data, i), "it is not UTF-8")
				}
			}
			i = next
		default:
			if s.Dirty = true; s.Strict {
				return s.failString(i, "a control character in a text was expected to be escaped")
			}
			i++
		}
	}
	return s.failString(len(s.Data), "a text has no end")
}

func (s *Scanner) failString(at int, reason string) String {
	s.Pos = at
	s.fail(reason)
	return String{}
}

// escapeProblem describes the invalid escape sequence at the start of data.
func escapeProblem(data []byte) string {
	switch {
	case len(data) < 2:
		return "a text has no end"
	case data[1] == 'u':
		return "an escape is broken"
	}
	return "an escape is unknown"
}

// skipNonASCII returns the offset of the next ASCII byte from i on, and whether
// the bytes before it are UTF-8.
func skipNonASCII(data []byte, i int) (next int, valid bool) {
	valid = true
	for i < len(data) && data[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			valid = false
		}
		i += n
	}
	return i, valid
}

// indexInvalid returns the first offset from i on at which data is not UTF-8.
func indexInvalid(data []byte, i int) int {
	for i < len(data) {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
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
