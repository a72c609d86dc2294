package match

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"
)

// AppendJSON appends the compact JSON text of v: numbers as they were
// written, names in their order, of equal names all.
func AppendJSON(dst []byte, v *fastjson.Value) []byte {
	switch v.Type() {
	case fastjson.TypeString:
		return AppendString(dst, view(v.GetStringBytes()))
	case fastjson.TypeArray:
		dst = append(dst, '[')
		for i, item := range v.GetArray() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSON(dst, item)
		}
		return append(dst, ']')
	case fastjson.TypeObject:
		dst = append(dst, '{')
		first := true
		v.GetObject().Visit(func(name []byte, item *fastjson.Value) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = AppendString(dst, view(name))
			dst = append(dst, ':')
			dst = AppendJSON(dst, item)
		})
		return append(dst, '}')
	default:
		return v.MarshalTo(dst)
	}
}

const hex = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// the replacement character.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscaped(dst, c)
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// plainDigits reports whether a JSON number is an integer without exponent,
// whose text is the same for everybody.
func plainDigits(token string) bool {
	for i := 0; i < len(token); i++ {
		if c := token[i]; (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return token != "-0"
}

// appendNumber appends the text of a number that was written with a fraction
// or an exponent: the shortest digits that read back the same, and ".0" after
// a whole one. Only exponents are printed where a browser prints them.
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

// canonical is the text of a list or an object with its names sorted and its
// numbers written one way, so that equal ones have equal texts.
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
		dst = AppendString(dst, name)
		dst = append(dst, ':')
		dst = appendCanonical(dst, items[name])
	}
	return append(dst, '}')
}
