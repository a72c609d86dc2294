package event

import (
	"unicode/utf16"
	"unicode/utf8"
)

// escape measures the escape sequence that data starts with: its length, 0
// when it is none, and whether other readers can store what it stands for. A
// surrogate pair is measured as one sequence.
func escape(data []byte) (n int, clean bool) {
	if len(data) < 2 {
		return 0, false
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		r, ok := unit(data)
		switch {
		case !ok:
			return 0, false
		case r == 0:
			return 6, false
		case r < 0xd800 || r > 0xdfff:
			return 6, true
		}
		if low, ok := unit(data[6:]); ok && r < 0xdc00 && low >= 0xdc00 && low <= 0xdfff {
			return 12, true
		}
		return 6, false
	}
	return 0, false
}

// unit reads a sequence of a backslash, a u and four hexadecimal digits.
func unit(data []byte) (r rune, ok bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	for _, c := range data[2:6] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// rune8 returns the length of the UTF-8 sequence data starts with, or 0.
func rune8(data []byte) int {
	r, n := utf8.DecodeRune(data)
	if r == utf8.RuneError && n <= 1 {
		return 0
	}
	return n
}

// PlainName returns the string for a switch over names that are known: itself
// when it holds no escapes, else resolved into buf.
func (t Text) PlainName(buf []byte) []byte {
	if !t.escaped {
		return t.Raw
	}
	return t.append(buf[:0])
}

// append appends what the string reads as, in clean UTF-8: NUL and bytes that
// are not UTF-8 become U+FFFD, the two halves in which old browsers send
// characters beyond the first 65,536 (CESU-8) become that character, and half
// a surrogate pair becomes the six characters of its escape.
func (t Text) append(dst []byte) []byte {
	for i := 0; i < len(t.Raw); {
		n := 1
		switch c := t.Raw[i]; {
		case c == '\\':
			var clean bool
			n, clean = escape(t.Raw[i:])
			dst = appendUnescaped(dst, t.Raw[i:i+n], clean)
		case c == 0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			dst, n = appendWide(dst, t.Raw[i:], "")
		}
		i += n
	}
	return dst
}

// appendWide appends the character beyond ASCII that data starts with, mended
// when it is not UTF-8, and says how many bytes it took. before goes in front
// of the escape that stands for half a surrogate pair.
func appendWide(dst, data []byte, before string) ([]byte, int) {
	if n := rune8(data); n > 0 {
		return append(dst, data[:n]...), n
	}
	half := cesu(data)
	switch {
	case half == 0:
		return utf8.AppendRune(dst, utf8.RuneError), 1
	case half < 0xdc00 && cesu(data[3:]) >= 0xdc00:
		return utf8.AppendRune(dst, utf16.DecodeRune(half, cesu(data[3:]))), 6
	}
	return appendUnit(append(dst, before...), half), 3
}

// cesu returns the half of a surrogate pair that the first three bytes of data
// encode, or 0.
func cesu(data []byte) rune {
	if len(data) < 3 || data[0] != 0xed || data[1]&0xe0 != 0xa0 || data[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(data[1]&0x3f)<<6 | rune(data[2]&0x3f)
}

// appendUnit appends the escape of a unit of UTF-16.
func appendUnit(dst []byte, u rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

func appendUnescaped(dst, seq []byte, clean bool) []byte {
	switch c := seq[1]; c {
	case 'b':
		return append(dst, '\b')
	case 'f':
		return append(dst, '\f')
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'u':
		r, _ := unit(seq)
		switch {
		case r == 0:
			return utf8.AppendRune(dst, utf8.RuneError)
		case !clean:
			return append(dst, seq...)
		case len(seq) == 12:
			low, _ := unit(seq[6:])
			r = utf16.DecodeRune(r, low)
		}
		return utf8.AppendRune(dst, r)
	default: // a quote, a backslash or a slash stands for itself
		return append(dst, c)
	}
}

// AppendClean appends valid, compact JSON text that every reader can store:
// what append does inside strings, and null for NaN and the infinities. The
// text must have passed the scanner.
func AppendClean(dst, raw []byte) []byte {
	inside := false
	for i := 0; i < len(raw); {
		c := raw[i]
		n := 1
		switch {
		case c == '"':
			inside = !inside
			dst = append(dst, c)
		case inside && c == '\\':
			var clean bool
			n, clean = escape(raw[i:])
			dst = appendCleanEscape(dst, raw[i:i+n], clean)
		case inside && c >= utf8.RuneSelf:
			dst, n = appendWide(dst, raw[i:], `\`)
		case inside && c == 0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case inside && c < ' ':
			dst = appendUnit(dst, rune(c))
		case !inside && c == 'N':
			dst, n = append(dst, "null"...), len("NaN")
		case !inside && c == 'I':
			dst, n = append(dst, "null"...), len("Infinity")
		case !inside && c == '-' && raw[i+1] == 'I':
			dst, n = append(dst, "null"...), len("-Infinity")
		case !inside && c <= ' ':
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}

func appendCleanEscape(dst, seq []byte, clean bool) []byte {
	if clean {
		return append(dst, seq...)
	}
	if r, _ := unit(seq); r == 0 {
		return utf8.AppendRune(dst, utf8.RuneError)
	}
	return append(append(dst, '\\'), seq...)
}
