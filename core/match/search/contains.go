package search

import "strings"

// LowByte lower-cases A to Z and nothing else.
func LowByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// LowerASCII lower-cases A to Z and nothing else.
func LowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// HasPrefix reports whether s starts with prefix, a lower-case text, ignoring
// the case of ASCII letters.
func HasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && common(s, prefix) == len(prefix)
}

// HasSuffix is HasPrefix for the end of s.
func HasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && HasPrefix(s[len(s)-len(suffix):], suffix)
}

// common returns the length of the common prefix of s and a lower-case text
// that is not longer.
func common(s, lower string) int {
	for i := 0; i < len(lower); i++ {
		if LowByte(s[i]) != lower[i] {
			return i
		}
	}
	return len(lower)
}

// slack is the number of repeated comparisons, per byte of text, after which a
// search continues with a table. Ordinary texts stay below it.
const slack = 2

// Contains reports whether s contains needle, a lower-case text, ignoring the
// case of ASCII letters. It takes linear time.
func Contains(s, needle string) bool {
	if needle == "" {
		return true
	}
	first, rest := needle[0], needle[1:]
	spare := slack * len(s)
	for i := 0; i+len(needle) <= len(s); i++ {
		if LowByte(s[i]) != first {
			continue
		}
		n := common(s[i+1:], rest)
		if n == len(rest) {
			return true
		}
		if spare -= n; spare < 0 {
			return containsByTable(s[i+1:], needle)
		}
	}
	return false
}

// containsByTable is Contains by the algorithm of Knuth, Morris and Pratt, which
// never compares a byte of s again with the same byte of needle.
func containsByTable(s, needle string) bool {
	table := make([]int32, len(needle))
	for i, k := 1, int32(0); i < len(needle); i++ {
		for k > 0 && needle[i] != needle[k] {
			k = table[k-1]
		}
		if needle[i] == needle[k] {
			k++
		}
		table[i] = k
	}
	k := int32(0)
	for i := 0; i < len(s); i++ {
		c := LowByte(s[i])
		for k > 0 && c != needle[k] {
			k = table[k-1]
		}
		if c == needle[k] {
			k++
		}
		if int(k) == len(needle) {
			return true
		}
	}
	return false
}
