package match

import (
	"strings"
	"unicode/utf8"
)

// maxElements is how many elements of a chain are looked at. Browsers do not
// nest deeper than half of it.
const maxElements = 1024

// What a Chain keeps for the next text; more than that is given back.
const (
	keptAttributes = 4096
	keptBytes      = 64 << 10
)

// Chain is the element that was clicked and its ancestors, innermost first,
// read from the text that ingestion stores beside an event. Reading never
// fails: what is not in the grammar is skipped. It happens when something is
// first asked, so that an event nobody asks about costs nothing.
//
// A Chain belongs to one goroutine. Reset gives it another text and keeps its
// memory: in the long run reading allocates nothing.
type Chain struct {
	text     string
	read     bool
	elements []Element
	attrs    []attribute
	plain    []byte // values that were written with escapes
	value    Value  // the one under test
}

// attribute is one key="value" of an element, as its key is written.
type attribute struct{ key, value string }

// Element is one element of a chain. Text, Href, ID and Tag are empty when the
// element has none.
type Element struct {
	Tag  string
	Text string
	Href string
	ID   string
	// NthChild and NthOfType count from 1; 0 is an unknown place and -1 none.
	NthChild, NthOfType int

	head  string // the classes in front of the attributes, each behind its dot
	attrs []attribute
}

// NewChain returns the chain that text describes.
func NewChain(text string) *Chain { return &Chain{text: text} }

// Reset makes c the chain that text describes. Whatever was read from c
// before must not be used any more.
func (c *Chain) Reset(text string) {
	if cap(c.attrs) > keptAttributes {
		c.attrs = nil
	}
	if cap(c.plain) > keptBytes {
		c.plain = nil
	}
	c.text, c.read = text, false
	c.elements, c.attrs, c.plain = c.elements[:0], c.attrs[:0], c.plain[:0]
}

// Elements returns the elements, the clicked one first. They are valid until
// the next Reset.
func (c *Chain) Elements() []Element {
	if !c.read {
		c.read = true
		c.parse()
	}
	return c.elements
}

// Attr returns the value of an HTML attribute and whether the element has it.
// The chain keeps id and href twice, of which the short form goes first.
func (e *Element) Attr(name string) (string, bool) {
	switch name {
	case "id":
		if v, ok := e.lookup("", "attr_id"); ok {
			return v, true
		}
	case "href":
		if v, ok := e.lookup("", "href"); ok {
			return v, true
		}
	}
	return e.lookup("attr__", name)
}

// lookup finds the value of the key prefix+name; of several the last.
func (e *Element) lookup(prefix, name string) (string, bool) {
	for i := len(e.attrs) - 1; i >= 0; i-- {
		a := &e.attrs[i]
		if len(a.key) == len(prefix)+len(name) && a.key[:len(prefix)] == prefix && a.key[len(prefix):] == name {
			return a.value, true
		}
	}
	return "", false
}

// HasClass reports whether the element has the class, which is one whole word
// of its class attribute. A chain without that attribute has the classes only
// in front of its attributes, where dots stand between them: there a class
// with a dot cannot be told from two classes.
func (e *Element) HasClass(class string) bool {
	if words, ok := e.lookup("attr__", "class"); ok && words != "" {
		return hasWord(words, class)
	}
	for at := 0; class != ""; at++ {
		i := strings.Index(e.head[at:], class)
		if i < 0 {
			break
		}
		at += i
		end := at + len(class)
		if at > 0 && e.head[at-1] == '.' && (end == len(e.head) || e.head[end] == '.') {
			return true
		}
	}
	return false
}

// hasWord reports whether word is one of those that white space parts in s.
func hasWord(s, word string) bool {
	for i := 0; i < len(s); {
		if white(s[i]) {
			i++
			continue
		}
		start := i
		for i < len(s) && !white(s[i]) {
			i++
		}
		if s[start:i] == word {
			return true
		}
	}
	return false
}

// Classes returns the classes as HasClass knows them, in the order written.
func (e *Element) Classes() []string {
	if words, ok := e.lookup("attr__", "class"); ok && words != "" {
		return spaced(words)
	}
	return strings.FieldsFunc(e.head, func(r rune) bool { return r == '.' })
}

// spaced splits s at the white space that HTML knows.
func spaced(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r < utf8.RuneSelf && white(byte(r)) })
}

func white(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }
