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
