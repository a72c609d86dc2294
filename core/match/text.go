package match

import (
	"strings"

	"github.com/valyala/fastjson"
)

// exactText returns the text that equality compares: the characters of a string,
// the compact JSON of other kinds. The number 1 equals "1", 1.0 does not.
func exactText(v *Value) string {
	if v.kind == Array || v.kind == Object {
		return canonical(v.text)
	}
	return v.text
}

// loose returns the text that contains, starts, ends, patterns and versions
// compare. It differs from exactText in whole numbers, which have no fraction,
// and in lists, which are the texts of their elements joined by commas.
func loose(v *Value) string {
	switch v.kind {
	case Number:
		return strings.TrimSuffix(v.text, ".0")
	case Array, Object:
		if p, err := fastjson.Parse(v.text); err == nil {
			return string(appendLoose(nil, p))
		}
	default:
	}
	return v.text
}

func appendLoose(dst []byte, v *fastjson.Value) []byte {
	switch v.Type() {
	case fastjson.TypeArray:
		for i, item := range v.GetArray() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if item.Type() != fastjson.TypeNull {
				dst = appendLoose(dst, item)
			}
		}
		return dst
	case fastjson.TypeObject:
		return append(dst, "[object Object]"...)
	default:
		one, _ := FromJSON(v, nil)
		return append(dst, loose(&one)...)
	}
}

// lowerASCII lower-cases A to Z and nothing else.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func lowByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// hasPrefix reports whether s starts with prefix, a lower-case text, ignoring
// the case of ASCII letters.
func hasPrefix(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := 0; i < len(prefix); i++ {
		if lowByte(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

func hasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && hasPrefix(s[len(s)-len(suffix):], suffix)
}

// contains reports whether s contains needle, a lower-case text, ignoring the
// case of ASCII letters.
func contains(s, needle string) bool {
	if needle == "" {
		return true
	}
	first := needle[0]
	for i := 0; i+len(needle) <= len(s); i++ {
		if lowByte(s[i]) == first && hasPrefix(s[i+1:], needle[1:]) {
			return true
		}
	}
	return false
}
