package match

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/jsontext"
)

// plainDigits reports whether a JSON number is an integer without exponent: its
// text is canonical.
func plainDigits(token string) bool {
	for i := 0; i < len(token); i++ {
		if c := token[i]; (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return token != "-0"
}

// appendNumber appends the canonical text of a number that was written with a
// fraction or an exponent: the shortest digits that read back the same, and ".0"
// after a whole one. Exponents appear in the range in which browsers print them.
func appendNumber(dst []byte, n float64, integer bool) []byte {
	size := math.Abs(n)
	switch {
	case n == 0:
		dst = append(dst, '0')
	case size >= 1e21 || size < 1e-6:
		return appendExponent(dst, n)
	default:
		dst = strconv.AppendFloat(dst, n, 'f', -1, 64)
	}
	if n == math.Trunc(n) && !integer {
		dst = append(dst, ".0"...)
	}
	return dst
}

func appendExponent(dst []byte, n float64) []byte {
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
	dst = append(append(dst, digits...), 'e', exponent[0])
	return append(dst, strings.TrimLeft(exponent[1:], "0")...)
}

// canonical returns the text of a list or an object with sorted names and
// canonical numbers, so that equal values have equal texts.
func canonical(text string) string {
	v, err := fastjson.Parse(text)
	if err != nil {
		return text
	}
	return string(appendCanonical(nil, v))
}

func appendCanonical(dst []byte, v *fastjson.Value) []byte {
	switch v.Type() {
	case fastjson.TypeArray:
		dst = append(dst, '[')
		for i, item := range v.GetArray() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, item)
		}
		return append(dst, ']')
	case fastjson.TypeObject:
		return appendSorted(dst, v.GetObject())
	default:
		one, _ := FromJSON(v, nil)
		return one.AppendTo(dst)
	}
}

func appendSorted(dst []byte, o *fastjson.Object) []byte {
	items := map[string]*fastjson.Value{}
	o.Visit(func(name []byte, item *fastjson.Value) { items[string(name)] = item })
	names := make([]string, 0, len(items))
	for name := range items {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(dst, name)
		dst = append(dst, ':')
		dst = appendCanonical(dst, items[name])
	}
	return append(dst, '}')
}

// AppendJSON is jsontext.AppendJSON, for the evaluator, which imports match only.
func AppendJSON(dst []byte, v *fastjson.Value) []byte { return jsontext.AppendJSON(dst, v) }

// AppendString is jsontext.AppendString, for the evaluator.
func AppendString(dst []byte, s string) []byte { return jsontext.AppendString(dst, s) }
