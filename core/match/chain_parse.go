package match

import (
	"strconv"
	"strings"
)

// maxOddKey bounds the search for the end of a key with characters other than
// letters, digits, dashes and underscores (attr__@click). It keeps reading
// linear in texts with many unfinished keys.
const maxOddKey = 256

// parse reads the text: elements separated by semicolons or white space. An
// element is a tag, classes with dots, a colon, and adjacent keys with quoted
// values.
func (c *Chain) parse() {
	for i := 0; i < len(c.text) && len(c.elements) < maxElements; {
		if apart(c.text[i]) {
			i++
			continue
		}
		i = c.element(i)
	}
}

// apart reports whether c separates elements.
func apart(c byte) bool { return c == ';' || white(c) }

// element reads the element that starts at i and returns the offset of its end.
func (c *Chain) element(i int) int {
	s := c.text
	end := i
	attributes := false
	for ; end < len(s) && !apart(s[end]); end++ {
		if s[end] == ':' && keyAt(s, end+1) {
			attributes = true
			break
		}
	}
	e := Element{NthChild: -1, NthOfType: -1, Tag: s[i:end]}
	if dot := strings.IndexByte(e.Tag, '.'); dot >= 0 {
		e.Tag, e.head = e.Tag[:dot], e.Tag[dot:]
	}
	if attributes {
		start := len(c.attrs)
		end = c.attributes(end + 1)
		e.attrs = c.attrs[start:len(c.attrs):len(c.attrs)]
		e.fill()
	}
	c.elements = append(c.elements, e)
	return end
}

// attributes reads the rest of an element and returns the offset of its end.
func (c *Chain) attributes(i int) int {
	s := c.text
	for i < len(s) && !apart(s[i]) {
		equals := keyEnd(s, i)
		if equals < 0 {
			for i < len(s) && !apart(s[i]) {
				i++
			}
			return i
		}
		closing, escaped := valueEnd(s, equals+2)
		a := attribute{s[i:equals], s[equals+2 : closing]}
		if escaped {
			a.value = c.unescape(a.value)
		}
		if strings.IndexByte(a.key, '\\') >= 0 {
			a.key = c.unescape(a.key)
		}
		c.attrs = append(c.attrs, a)
		i = min(closing+1, len(s))
	}
	return i
}

// keyAt reports whether a key with an opening quote begins at i.
func keyAt(s string, i int) bool {
	if strings.HasPrefix(s[i:], "attr__") {
		return keyEnd(s[:min(len(s), i+maxOddKey)], i) > 0
	}
	for i < len(s) && (s[i] == '-' || s[i] == '_' || alphanumeric(s[i])) {
		i++
	}
	return strings.HasPrefix(s[i:], `="`)
}

func alphanumeric(c byte) bool { return c-'0' < 10 || c|0x20-'a' < 26 }

// keyEnd returns the offset of the equals sign after the key at i, or -1 if the
// element ends before a value.
func keyEnd(s string, i int) int {
	for start := i; i < len(s); i++ {
		switch c := s[i]; {
		case apart(c), c == '"' && (i == start || s[i-1] != '\\'):
			return -1
		case c == '=' && i+1 < len(s) && s[i+1] == '"':
			return i
		}
	}
	return -1
}

// valueEnd returns the offset of the quote that ends the value at i, or of the
// end of the text, and whether the value has escapes. A quote after an odd
// number of backslashes belongs to the value.
func valueEnd(s string, i int) (closing int, escaped bool) {
	start := i
	for {
		quote := strings.IndexByte(s[i:], '"')
		if quote < 0 {
			return len(s), escaped
		}
		i += quote
		slashes := 0
		for i-slashes > start && s[i-slashes-1] == '\\' {
			slashes++
		}
		escaped = escaped || slashes > 0
		if slashes%2 == 0 {
			return i, escaped
		}
		i++
	}
}

// unescape halves the backslashes before quotes and at the end. Others are
// literal.
func (c *Chain) unescape(s string) string {
	start := len(c.plain)
	for i := 0; i < len(s); {
		run := i
		for run < len(s) && s[run] == '\\' {
			run++
		}
		slashes := run - i
		if run == len(s) || s[run] == '"' {
			slashes /= 2
		}
		c.plain = append(c.plain, s[i:i+slashes]...)
		if run < len(s) {
			c.plain = append(c.plain, s[run])
			run++
		}
		i = run
	}
	return view(c.plain[start:])
}

// fill sets the fields that come from attributes.
func (e *Element) fill() {
	e.Href, _ = e.Attr("href")
	e.ID, _ = e.Attr("id")
	for i := range e.attrs {
		switch a := &e.attrs[i]; a.key {
		case "text":
			e.Text = a.value
		case "nth-child":
			e.NthChild = place(a.value)
		case "nth-of-type":
			e.NthOfType = place(a.value)
		}
	}
}

func place(s string) int {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
