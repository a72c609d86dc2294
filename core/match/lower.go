package match

import (
	"unicode"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/match/search"
)

// lower lower-cases s by Unicode's default mapping, as clients do: unlike
// strings.ToLower it handles the final sigma and keeps the dot of İ.
func lower(s string) string { return string(appendLower(nil, s)) }

func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			dst = append(dst, search.LowByte(s[i]))
			i++
			continue
		}
		var n int
		dst, n = appendLowerRune(dst, s, i)
		i += n
	}
	return dst
}

// appendLowerRune appends the lower case of the rune at i and returns the
// rune's length in s.
func appendLowerRune(dst []byte, s string, i int) ([]byte, int) {
	r, n := utf8.DecodeRuneInString(s[i:])
	switch r {
	case 'İ':
		return append(dst, "i\u0307"...), n
	case 'Σ':
		if finalSigma(s, i, n) {
			return append(dst, "ς"...), n
		}
	}
	return utf8.AppendRune(dst, unicode.ToLower(r)), n
}

// equalLower reports whether the lower case of s is want. It does not allocate.
func equalLower(s, want string) bool {
	j := 0
	var buf [2 * utf8.UTFMax]byte
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			if j >= len(want) || search.LowByte(s[i]) != want[j] {
				return false
			}
			i++
			j++
			continue
		}
		low, n := appendLowerRune(buf[:0], s, i)
		if j+len(low) > len(want) || want[j:j+len(low)] != string(low) {
			return false
		}
		i += n
		j += len(low)
	}
	return j == len(want)
}

// finalSigma reports whether the sigma of n bytes at i ends a word: a cased
// letter precedes it and none follows; ignorable characters are skipped.
func finalSigma(s string, i, n int) bool {
	before := s[:i]
	for len(before) > 0 {
		r, size := utf8.DecodeLastRuneInString(before)
		if !ignorable(r) {
			if !cased(r) {
				return false
			}
			break
		}
		before = before[:len(before)-size]
	}
	if before == "" {
		return false
	}
	for _, r := range s[i+n:] {
		if !ignorable(r) {
			return !cased(r)
		}
	}
	return true
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Upper, unicode.Lower, unicode.Title, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

func ignorable(r rune) bool {
	switch r {
	case '\'', '.', ':', '\u00b7', '\u2019', '\u2027', '^', '`', '¨', '\u00ad':
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}
