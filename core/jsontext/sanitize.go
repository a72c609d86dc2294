package jsontext

import (
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendClean appends raw as compact JSON text that every store can hold. The
// text must have passed a Scanner.
//
//   - NaN and the infinities become null.
//   - Bare control characters in strings become escapes, NUL becomes U+FFFD.
//   - CESU-8, in which old browsers send characters beyond U+FFFF, becomes UTF-8;
//     other bytes that are not UTF-8 become U+FFFD.
//   - Half a surrogate pair becomes the six visible characters of its escape.
func AppendClean(dst, raw []byte) []byte { return sanitize(dst, raw, false, math.MaxInt) }

// Sanitize is AppendClean that keeps the white space between values, writes
// U+FFFD for NUL as an escape, and ends early once dst is longer than limit.
func Sanitize(dst, raw []byte, limit int) []byte { return sanitize(dst, raw, true, limit) }

func sanitize(dst, raw []byte, keepSpace bool, limit int) []byte {
	nul := "\ufffd" // stands for NUL
	if keepSpace {
		nul = `\ufffd`
	}
	inside := false
	for i := 0; i < len(raw) && len(dst) <= limit; {
		c := raw[i]
		n := 1
		switch {
		case c == '"':
			inside = !inside
			dst = append(dst, c)
		case inside && c == '\\':
			var storable bool
			n, storable = measureEscape(raw[i:])
			dst = appendCleanEscape(dst, raw[i:i+n], storable, nul)
		case inside && c >= utf8.RuneSelf:
			dst, n = appendNonASCII(dst, raw[i:], `\`)
		case inside && c == 0:
			dst = append(dst, nul...)
		case inside && c < ' ':
			dst = appendEscape(dst, rune(c))
		case !inside && c == 'N':
			dst, n = append(dst, "null"...), len("NaN")
		case !inside && c == 'I':
			dst, n = append(dst, "null"...), len("Infinity")
		case !inside && c == '-' && raw[i+1] == 'I':
			dst, n = append(dst, "null"...), len("-Infinity")
		case !inside && c <= ' ' && !keepSpace:
		default:
			dst = append(dst, c)
		}
		i += n
	}
	return dst
}

func appendCleanEscape(dst, seq []byte, storable bool, nul string) []byte {
	if storable {
		return append(dst, seq...)
	}
	if r, _ := parseUnicodeEscape(seq); r == 0 {
		return append(dst, nul...)
	}
	return append(append(dst, '\\'), seq...)
}

// appendNonASCII appends the character beyond ASCII at the start of data,
// repaired if it is not UTF-8, and returns how many bytes it took. before goes in
// front of the escape that stands for half a surrogate pair.
func appendNonASCII(dst, data []byte, before string) ([]byte, int) {
	if n := utf8Len(data); n > 0 {
		return append(dst, data[:n]...), n
	}
	half := surrogateFromCESU8(data)
	switch {
	case half == 0:
		return utf8.AppendRune(dst, utf8.RuneError), 1
	case half < 0xdc00 && surrogateFromCESU8(data[3:]) >= 0xdc00:
		return utf8.AppendRune(dst, utf16.DecodeRune(half, surrogateFromCESU8(data[3:]))), 6
	}
	return appendEscape(append(dst, before...), half), 3
}

// utf8Len returns the length of the UTF-8 sequence at the start of data, 0 if it
// is invalid.
func utf8Len(data []byte) int {
	r, n := utf8.DecodeRune(data)
	if r == utf8.RuneError && n <= 1 {
		return 0
	}
	return n
}

// surrogateFromCESU8 returns the half of a surrogate pair that the first three
// bytes of data encode, or 0.
func surrogateFromCESU8(data []byte) rune {
	if len(data) < 3 || data[0] != 0xed || data[1]&0xe0 != 0xa0 || data[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(data[1]&0x3f)<<6 | rune(data[2]&0x3f)
}

const hexDigits = "0123456789abcdef"

// appendEscape appends the escape of a UTF-16 code unit.
func appendEscape(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
