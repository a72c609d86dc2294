package jsontext

import "strings"

// Cursor reads the members of an object or the elements of an array without
// allocating: Key and Value are parts of the text; a key with escapes is a copy.
// It trusts the text, which has passed a Scanner or was stored. On text that is
// not valid JSON it stops early and sets Bad, and never reads past the end.
type Cursor struct {
	Key, Value string
	Bad        bool

	s     string
	i     int
	first bool
}

// OpenObject returns a Cursor before the first member of the object in s.
func OpenObject(s string) (Cursor, bool) {
	c := Cursor{s: s, first: true}
	if c.peek() != '{' {
		return c, false
	}
	c.i++
	return c, true
}

// OpenArray returns a Cursor before the first element of the array in s; Element
// moves it.
func OpenArray(s string) (Cursor, bool) {
	c := Cursor{s: s, first: true}
	if c.peek() != '[' {
		return c, false
	}
	c.i++
	return c, true
}

// Next moves to the next member. It returns false at the end of the object.
func (c *Cursor) Next() bool {
	if !c.separator('}') {
		return false
	}
	raw := c.value()
	key, ok := Unquote(raw)
	if !ok || c.peek() != ':' {
		return c.fail()
	}
	c.i++
	c.Key, c.Value = key, c.value()
	return !c.Bad
}

// Element moves to the next element. It returns false at the end of the array.
func (c *Cursor) Element() bool {
	if !c.separator(']') {
		return false
	}
	c.Value = c.value()
	return !c.Bad
}

func (c *Cursor) fail() bool {
	c.Bad, c.i = true, len(c.s)
	return false
}

// separator steps over the comma before an item, or over the closing byte and
// reports false.
func (c *Cursor) separator(closing byte) bool {
	b := c.peek()
	switch {
	case b == closing:
		c.i++
		return false
	case c.first && b != 0:
		c.first = false
		return true
	case b == ',':
		c.i++
		return true
	}
	return c.fail()
}

// peek skips white space and returns the byte there, or 0 at the end.
func (c *Cursor) peek() byte {
	for c.i < len(c.s) {
		switch b := c.s[c.i]; b {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return b
		}
	}
	return 0
}

// value steps over one value and returns its text.
func (c *Cursor) value() string {
	b := c.peek()
	start := c.i
	switch b {
	case 0, ',', ':', '}', ']':
		c.fail()
	case '"':
		c.str()
	case '{', '[':
		c.nested()
	default:
		for c.i < len(c.s) && !ends(c.s[c.i]) {
			c.i++
		}
	}
	if c.Bad {
		return ""
	}
	return c.s[start:c.i]
}

// ends reports whether b ends a number or a word.
func ends(b byte) bool {
	switch b {
	case ',', '}', ']', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// str steps over the string that starts at the cursor.
func (c *Cursor) str() {
	i := c.i + 1
	for {
		n := strings.IndexByte(c.s[i:], '"')
		if n < 0 {
			c.fail()
			return
		}
		slash := strings.IndexByte(c.s[i:i+n], '\\')
		if slash < 0 {
			c.i = i + n + 1
			return
		}
		i = min(i+slash+2, len(c.s))
	}
}

// nested steps over the object or array that starts at the cursor.
func (c *Cursor) nested() {
	depth := 0
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case '"':
			c.str()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				c.i++
				return
			}
		}
		c.i++
	}
	c.fail()
}
