package match

import (
	"strings"
	"unicode/utf8"
)

// maxElements bounds the elements read from a chain. Browsers nest at most half
// as deep.
const maxElements = 1024

// Limits of the memory that a Chain keeps for the next text.
const (
	keptAttributes = 4096
	keptBytes      = 64 << 10
)

// Chain is the element that was clicked and its ancestors, innermost first,
// read from the text that ingestion stores beside an event. Reading never
// fails: text outside the grammar is skipped. The text is parsed on first use,
// so an event without element conditions costs nothing.
//
// A Chain belongs to one goroutine. Reset gives it another text and keeps its
// memory, so a reused Chain stops allocating.
type Chain struct {
	text     string
	read     bool
	elements []Element
	attrs    []attribute
	plain    []byte // values that were written with escapes
	value    Value  // scratch for ElementFilter
}

// attribute is one key="value" of an element. The key keeps its prefix.
type attribute struct{ key, value string }

// Element is one element of a chain. Text, Href, ID and Tag are empty when the
// element has none.
type Element struct {
	Tag  string
	Text string
	Href string
	ID   string
	// NthChild and NthOfType count from 1; 0 is an unknown position, -1 an
	// absent one.
	NthChild, NthOfType int

	head  string // the classes in front of the attributes, each behind its dot
	attrs []attribute
}

// NewChain returns the chain of a text.
func NewChain(text string) *Chain { return &Chain{text: text} }

// Reset makes c the chain of another text. Elements and strings read from c
// before are invalid afterwards.
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
// A chain holds id and href twice; the shortened form has precedence.
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

// lookup returns the last value of the key prefix+name.
func (e *Element) lookup(prefix, name string) (string, bool) {
	for i := len(e.attrs) - 1; i >= 0; i-- {
		a := &e.attrs[i]
		if len(a.key) == len(prefix)+len(name) && a.key[:len(prefix)] == prefix && a.key[len(prefix):] == name {
			return a.value, true
		}
	}
	return "", false
}

// HasClass reports whether the element has the class, a whole word of its class
// attribute. Without that attribute the classes are only in front of the
// attributes, separated by dots; there a class with a dot equals two classes.
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

// hasWord reports whether word is one of the words of s, separated by white
// space.
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

// Classes returns the classes that HasClass finds, in the order of the text.
func (e *Element) Classes() []string {
	if words, ok := e.lookup("attr__", "class"); ok && words != "" {
		return spaced(words)
	}
	return strings.FieldsFunc(e.head, func(r rune) bool { return r == '.' })
}

// spaced splits s at the white space of HTML.
func spaced(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r < utf8.RuneSelf && white(byte(r)) })
}

func white(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }
