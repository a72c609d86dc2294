package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// String is the source of a JSON string, without its quotes.
type String struct {
	Raw     []byte
	escaped bool // set by Scanner if Raw has escapes
}

// Resolve returns the bytes of the string for a switch over known names: Raw if
// it has no escapes, else the resolved string in buf.
func (t String) Resolve(buf []byte) []byte {
	if !t.escaped {
		return t.Raw
	}
	return t.Append(buf[:0])
}

// Equal reports whether both strings have the same value.
func (t String) Equal(o String) bool {
	if !t.escaped && !o.escaped {
		return bytes.Equal(t.Raw, o.Raw)
	}
	return bytes.Equal(t.Resolve(nil), o.Resolve(nil))
}

// Append appends the value of the string in clean UTF-8. NUL and bytes that are
// not UTF-8 become U+FFFD. The two halves in which old browsers send characters
// beyond U+FFFF (CESU-8) become that character. Half a surrogate pair becomes
// the six characters of its escape.
func (t String) Append(dst []byte) []byte {
	for i := 0; i < len(t.Raw); {
		n := 1
		switch c := t.Raw[i]; {
		case c == '\\':
			var storable bool
			n, storable = measureEscape(t.Raw[i:])
			dst = appendUnescaped(dst, t.Raw[i:i+n], storable)
		case c == 0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			dst, n = appendNonASCII(dst, t.Raw[i:], "")
		}
		i += n
	}
	return dst
}

// Unquote returns the value of a JSON string with its quotes, as encoding/json
// reads it: half a surrogate pair becomes U+FFFD. It returns false if text is
// not a string. The result shares memory with text unless it has escapes.
func Unquote(text string) (string, bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return "", false
	}
	inner := text[1 : len(text)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	var s string
	if json.Unmarshal([]byte(text), &s) != nil {
		return "", false
	}
	return s, true
}

// HasLoneSurrogate reports whether a valid JSON string has an escape that is
// half a surrogate pair.
func HasLoneSurrogate(raw []byte) bool {
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i < len(raw); {
		n, storable := measureEscape(raw[i:])
		if n == 6 && !storable {
			if r, _ := parseUnicodeEscape(raw[i:]); r != 0 {
				return true
			}
		}
		i += max(n, 1)
		next := bytes.IndexByte(raw[min(i, len(raw)):], '\\')
		if next < 0 {
			return false
		}
		i += next
	}
	return false
}

// measureEscape measures the escape sequence at the start of data: its length,
// 0 if it is invalid, and whether stores can hold the character. A surrogate
// pair is one sequence.
func measureEscape(data []byte) (n int, storable bool) {
	if len(data) < 2 {
		return 0, false
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		r, ok := parseUnicodeEscape(data)
		switch {
		case !ok:
			return 0, false
		case r == 0:
			return 6, false
		case r < 0xd800 || r > 0xdfff:
			return 6, true
		}
		if low, ok := parseUnicodeEscape(data[6:]); ok && r < 0xdc00 && low >= 0xdc00 && low <= 0xdfff {
			return 12, true
		}
		return 6, false
	}
	return 0, false
}

// parseUnicodeEscape reads a backslash, a u and four hexadecimal digits.
func parseUnicodeEscape(data []byte) (r rune, ok bool) {
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

// appendUnescaped appends the character of an escape sequence.
func appendUnescaped(dst, seq []byte, storable bool) []byte {
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
		r, _ := parseUnicodeEscape(seq)
		switch {
		case r == 0:
			return utf8.AppendRune(dst, utf8.RuneError)
		case !storable:
			return append(dst, seq...)
		case len(seq) == 12:
			low, _ := parseUnicodeEscape(seq[6:])
			r = utf16.DecodeRune(r, low)
		}
		return utf8.AppendRune(dst, r)
	default: // a quote, a backslash or a slash stands for itself
		return append(dst, c)
	}
}
