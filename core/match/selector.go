package match

import "strings"

// Selector is a compiled CSS selector over a Chain: tags, *, classes, #id,
// attributes (= ^= *= $=), :nth-child(n), :nth-of-type(n), and the descendant
// and child combinators. It is immutable and safe for parallel use. A nil
// Selector matches nothing.
//
// A chain is linear, so a selector is a sequence of runs (compounds joined by
// ">") that must occur in order, at any distance. The first match of each run
// leaves the most elements for the next, so matching never backtracks and costs
// at most the number of elements times the number of compounds.
type Selector struct {
	runs [][]compound // innermost first, and so within each
}

// compound holds the conditions on one element.
type compound struct {
	tag       string // "" is any
	classes   []string
	attrs     []attrTest
	nthChild  int // -1 is any
	nthOfType int
}

// attrTest compares an attribute: '=' all of it, '^' its prefix, '$' its suffix,
// '*' any part.
type attrTest struct {
	name  string
	op    byte
	value string
}

// price is the number of comparisons per byte of the text of a chain: each
// condition is tested on each element.
func (s *Selector) price() int64 {
	if s == nil {
		return 0
	}
	n := 0
	for _, run := range s.runs {
		for i := range run {
			n += 1 + len(run[i].classes) + len(run[i].attrs)
			for _, class := range run[i].classes {
				n += strings.Count(class, ".") // may be compared again after each dot
			}
		}
	}
	return int64(n)
}

// Match reports whether an element of the chain fits the last compound and
// its ancestors the others.
func (s *Selector) Match(c *Chain) bool {
	if s == nil {
		return false
	}
	elements := c.Elements()
	for _, run := range s.runs {
		at := find(run, elements)
		if at < 0 {
			return false
		}
		elements = elements[at+len(run):]
	}
	return true
}

// find returns the index of the first match of the run, or -1.
func find(run []compound, elements []Element) int {
	for at := 0; at+len(run) <= len(elements); at++ {
		fits := true
		for i := 0; i < len(run) && fits; i++ {
			fits = run[i].match(&elements[at+i])
		}
		if fits {
			return at
		}
	}
	return -1
}

func (m *compound) match(e *Element) bool {
	if m.tag != "" && m.tag != e.Tag ||
		m.nthChild >= 0 && m.nthChild != e.NthChild ||
		m.nthOfType >= 0 && m.nthOfType != e.NthOfType {
		return false
	}
	for _, class := range m.classes {
		if !e.HasClass(class) {
			return false
		}
	}
	for i := range m.attrs {
		if !m.attrs[i].match(e) {
			return false
		}
	}
	return true
}

func (t *attrTest) match(e *Element) bool {
	v, ok := e.Attr(t.name)
	if !ok {
		return false
	}
	if t.op == '=' {
		return v == t.value
	}
	if t.value == "" {
		return false
	}
	switch t.op {
	case '^':
		return strings.HasPrefix(v, t.value)
	case '$':
		return strings.HasSuffix(v, t.value)
	default:
		return strings.Contains(v, t.value)
	}
}
