package event

import (
	"encoding/binary"
	"math/bits"
)

// str reads the string whose opening quote is at the cursor.
func (s *Scanner) str() Text {
	start := s.Pos + 1
	i := plain(s.Data, start)
	if i < len(s.Data) && s.Data[i] == '"' {
		s.Pos = i + 1
		return Text{Raw: s.Data[start:i]}
	}
	return s.strSlow(start, i)
}

// strSlow reads on at i, where something else than the closing quote stands.
func (s *Scanner) strSlow(start, i int) (t Text) {
	for data := s.Data; i < len(data); i = plain(data, i) {
		switch c := data[i]; {
		case c == '"':
			s.Pos = i + 1
			t.Raw = data[start:i]
			return t
		case c == '\\':
			t.escaped = true
			n, clean := escape(data[i:])
			if n == 0 {
				s.fail()
				return Text{}
			}
			s.Dirty = s.Dirty || !clean
			i += n
		case c >= 0x80:
			n := rune8(data[i:])
			if n == 0 {
				s.Dirty, n = true, 1
			}
			i += n
		default: // a bare control character
			s.Dirty = true
			i++
		}
	}
	s.fail()
	return Text{}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns the first offset from i on at which data holds a quote, a
// backslash, a control character or a byte outside ASCII; eight bytes at a time.
func plain(data []byte, i int) int {
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		// A byte's high bit is set in stop when the byte has to be looked at.
		// There may be false alarms above the first one, never below it.
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
