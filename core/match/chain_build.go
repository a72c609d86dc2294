package match

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/jsontext"
)

// Limits in characters of an element's text and of its shortened href.
const (
	maxElementText = 400
	maxElementHref = 2048
)

// ChainBuilder writes the chain of a list of elements that a browser library
// sent. It keeps its memory for the next list and belongs to one goroutine.
type ChainBuilder struct {
	parser  fastjson.Parser
	attrs   []attribute
	classes []string
}

// Append appends the chain of a JSON list of elements, the clicked one first.
// An element is an object with tag_name, $el_text, nth_child, nth_of_type,
// classes and attr__NAME for each attribute of the page; attr__class may be a
// list, too. It appends nothing and returns false if elements is not a list.
func (b *ChainBuilder) Append(dst, elements []byte) ([]byte, bool) {
	v, err := b.parser.ParseBytes(elements)
	if err != nil || v.Type() != fastjson.TypeArray {
		return dst, false
	}
	start := len(dst)
	for _, item := range v.GetArray() {
		o, err := item.Object()
		if err != nil {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ';')
		}
		dst = b.element(dst, o)
	}
	return dst, true
}

func (b *ChainBuilder) element(dst []byte, o *fastjson.Object) []byte {
	b.read(o)
	tag := textOf(o.Get("tag_name"))
	for i := 0; i < len(tag); i++ {
		if c := tag[i]; c != '"' && !apart(c) {
			dst = append(dst, c)
		}
	}
	slices.Sort(b.classes)
	for _, class := range b.classes {
		dst = append(dst, '.')
		for i := 0; i < len(class); i++ {
			if c := class[i]; c != '"' && c != ';' {
				dst = append(dst, c)
			}
		}
	}
	slices.SortStableFunc(b.attrs, func(x, y attribute) int { return strings.Compare(x.key, y.key) })
	dst = append(dst, ':')
	for i, a := range b.attrs {
		if i+1 < len(b.attrs) && b.attrs[i+1].key == a.key {
			continue // the last of equal keys counts
		}
		dst = append(appendEscapedQuotes(dst, a.key), `="`...)
		dst = append(appendEscapedQuotes(dst, a.value), '"')
	}
	return dst
}

// read collects the attributes and the classes of an element.
func (b *ChainBuilder) read(o *fastjson.Object) {
	b.attrs, b.classes = b.attrs[:0], b.classes[:0]
	b.add("nth-child", strconv.Itoa(placeOf(o.Get("nth_child"))))
	b.add("nth-of-type", strconv.Itoa(placeOf(o.Get("nth_of_type"))))
	if text := textOf(o.Get("$el_text")); text != "" {
		b.add("text", firstRunes(text, maxElementText))
	}
	if href := o.Get("attr__href"); present(href) {
		b.add("href", firstRunes(textOf(href), maxElementHref))
	}
	if id := o.Get("attr__id"); present(id) {
		b.add("attr_id", textOf(id))
	}
	classes := o.Get("attr__class")
	if !present(classes) {
		classes = o.Get("classes")
	}
	b.classes = append(b.classes, spaced(words(classes))...)
	o.Visit(func(name []byte, v *fastjson.Value) {
		key := view(name)
		switch {
		case !strings.HasPrefix(key, "attr__") || !present(v):
		case key == "attr__class":
			b.add(key, words(v))
		default:
			b.add(key, textOf(v))
		}
	})
}

// add records an attribute. Characters that end a key in a chain are removed.
func (b *ChainBuilder) add(key, value string) {
	if strings.ContainsAny(key, "; \t\n\f\r=\\") {
		key = strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && (apart(byte(r)) || r == '=' || r == '\\') {
				return -1
			}
			return r
		}, key)
	}
	b.attrs = append(b.attrs, attribute{key, value})
}

func present(v *fastjson.Value) bool { return v != nil && v.Type() != fastjson.TypeNull }

// textOf returns the characters of a JSON string, the JSON text of other values.
func textOf(v *fastjson.Value) string {
	switch {
	case !present(v):
		return ""
	case v.Type() == fastjson.TypeString:
		return view(v.GetStringBytes())
	}
	return view(jsontext.AppendJSON(nil, v))
}

// words returns a list of classes in the form of a class attribute.
func words(v *fastjson.Value) string {
	if !present(v) || v.Type() != fastjson.TypeArray {
		return textOf(v)
	}
	var all []string
	for _, item := range v.GetArray() {
		all = append(all, textOf(item))
	}
	return strings.Join(all, " ")
}

func placeOf(v *fastjson.Value) int {
	n, err := strconv.ParseUint(textOf(v), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// appendEscapedQuotes appends s with a backslash before each quote. Backslashes
// before a quote or at the end are doubled, so that the end of the value is
// unambiguous.
func appendEscapedQuotes(dst []byte, s string) []byte {
	slashes := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			slashes++
		case '"':
			for ; slashes > 0; slashes-- {
				dst = append(dst, '\\')
			}
			dst = append(dst, '\\')
		default:
			slashes = 0
		}
		dst = append(dst, s[i])
	}
	for ; slashes > 0; slashes-- {
		dst = append(dst, '\\')
	}
	return dst
}
