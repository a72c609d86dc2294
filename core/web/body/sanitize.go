package body

import (
	"unicode/utf16"
	"unicode/utf8"
)

// sanitize is the last step of Decode: it checks that b is JSON and repairs
// what can be repaired.
func (u *unwrapper) sanitize(b []byte) ([]byte, error) {
	r := scanner{b: b, depth: u.limits.Depth, repair: true}
	if !r.check() {
		return nil, malformed("JSON: " + r.problem())
	}
	if !r.dirty {
		return b, nil
	}
	out := u.decoder.buffer(len(b) + len(b)/8)
	if out.b = appendSanitized(out.b, b, u.limits.InflatedBytes); len(out.b) > u.limits.InflatedBytes {
		return nil, tooLarge()
	}
	return out.b, nil
}

// appendSanitized appends the JSON text b, which scanner has accepted, to dst in
// a form that every reader and every database accepts:
//
//   - NaN and Infinity become null
//   - raw control characters in a text become escapes
//   - CESU-8, in which old browsers send characters beyond the first 65,536,
//     becomes UTF-8; other bytes that are not UTF-8 become U+FFFD
//   - a lone surrogate becomes the six visible characters of its escape
//   - NUL becomes U+FFFD
//
// It stops early when dst is longer than limit.
func appendSanitized(dst, b []byte, limit int) []byte {
	inText := false
	for i := 0; i < len(b) && len(dst) <= limit; {
		c := b[i]
		switch {
		case c == '"':
			inText = !inText
			dst = append(dst, c)
			i++
		case !inText && (c == 'N' || c == 'I'):
			dst = append(dst, "null"...)
			i += len("NaN")
			if c == 'I' {
				i += len("Infinity") - len("NaN")
			}
		case !inText && c == '-' && b[i+1] == 'I':
			i++
		case c == '\\':
			var n int
			dst, n = sanitizeEscape(dst, b[i:])
			i += n
		case c == 0:
			dst = append(dst, `\ufffd`...)
			i++
		case c < ' ' && inText:
			dst = appendEscape(dst, rune(c))
			i++
		case c >= utf8.RuneSelf:
			var n int
			dst, n = sanitizeWide(dst, b[i:])
			i += n
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// sanitizeEscape appends the escape at the start of b and returns its length.
func sanitizeEscape(dst, b []byte) ([]byte, int) {
	if b[1] != 'u' {
		return append(dst, b[:2]...), 2
	}
	switch u := hex4(b[2:]); {
	case u == 0:
		return append(dst, `\ufffd`...), 6
	case isHigh(u) && isLow(escapedUnit(b[6:])):
		return append(dst, b[:12]...), 12
	case isHigh(u) || isLow(u):
		dst = append(dst, '\\')
	}
	return append(dst, b[:6]...), 6
}

// sanitizeWide appends the character beyond ASCII at the start of b.
func sanitizeWide(dst, b []byte) ([]byte, int) {
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
		return append(dst, b[:n]...), n
	}
	u := surrogate(b)
	switch {
	case u < 0:
		return append(dst, "\ufffd"...), 1
	case isHigh(u):
		if low := surrogate(b[3:]); isLow(low) {
			return utf8.AppendRune(dst, utf16.DecodeRune(u, low)), 6
		}
	}
	return appendEscape(append(dst, '\\'), u), 3
}

// surrogate returns the surrogate that the first three bytes of b encode, or -1.
func surrogate(b []byte) rune {
	if len(b) < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || b[2] < 0x80 || b[2] > 0xbf {
		return -1
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f)
}

func appendEscape(dst []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}
