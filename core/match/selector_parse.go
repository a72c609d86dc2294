package match

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
)

// maxSelector bounds the bytes of a selector.
const maxSelector = 4096

// CompileSelector reads a selector. Unsupported syntax and an empty selector are
// Invalid faults at "selector" that name the character. The Selector is nil then
// and matches nothing, which suits stored selectors that were never checked.
func CompileSelector(text string) (*Selector, error) {
	r := &selectorReader{text: text}
	if len(text) > maxSelector {
		return nil, r.refuse(maxSelector, "a selector may have at most %d bytes", maxSelector)
	}
	r.space()
	if r.end() {
		return nil, r.refuse(0, "the selector is empty")
	}
	s := &Selector{}
	var outer [][]compound // runs, outermost first, and so within each
	for tied, more := false, true; more; {
		m, err := r.compound()
		if err != nil {
			return nil, err
		}
		if tied {
			last := len(outer) - 1
			outer[last] = append(outer[last], m)
		} else {
			outer = append(outer, []compound{m})
		}
		if tied, more, err = r.combinator(); err != nil {
			return nil, err
		}
	}
	for _, run := range slices.Backward(outer) {
		slices.Reverse(run)
		s.runs = append(s.runs, run)
	}
	return s, nil
}

// selectorReader is a cursor over the text of a selector.
type selectorReader struct {
	text string
	pos  int
}

func (r *selectorReader) end() bool { return r.pos >= len(r.text) }

// peek returns the byte at the cursor, or 0.
func (r *selectorReader) peek() byte {
	if r.end() {
		return 0
	}
	return r.text[r.pos]
}

func (r *selectorReader) space() (found bool) {
	for !r.end() && white(r.text[r.pos]) {
		r.pos++
		found = true
	}
	return found
}

// refuse returns the error about the text at an offset.
func (r *selectorReader) refuse(at int, format string, args ...any) error {
	character := utf8.RuneCountInString(r.text[:min(at, len(r.text))]) + 1
	return fault.Fieldf("selector", "invalid_input", "Invalid selector, character %d: %s", character, fmt.Sprintf(format, args...))
}

// combinator reads the text between two compounds. child is true for a parent and
// its child, more if another compound follows.
func (r *selectorReader) combinator() (child, more bool, err error) {
	apart := r.space()
	if r.end() {
		return false, false, nil
	}
	switch c := r.peek(); c {
	case '>':
		r.pos++
		r.space()
		return true, true, nil
	case ',':
		return false, false, r.refuse(r.pos, "lists of selectors are not supported; use one step for each")
	case '+', '~':
		return false, false, r.refuse(r.pos, "%q is not supported: only the ancestors of an element are known", c)
	case '|':
		return false, false, r.refuse(r.pos, "namespaces are not supported")
	}
	if !apart {
		return false, false, r.unexpected()
	}
	return false, true, nil
}

func (r *selectorReader) unexpected() error {
	if r.end() {
		return r.refuse(r.pos, "the selector ends too early")
	}
	c, _ := utf8.DecodeRuneInString(r.text[r.pos:])
	return r.refuse(r.pos, "unexpected %q", c)
}

// compound reads the conditions on one element.
func (r *selectorReader) compound() (compound, error) {
	m := compound{nthChild: -1, nthOfType: -1}
	start := r.pos
	var err error
	switch {
	case r.peek() == '*':
		r.pos++
	case r.nameAhead():
		if m.tag, err = r.name(false); err != nil {
			return m, err
		}
	}
	for {
		switch r.peek() {
		case '.':
			r.pos++
			var class string
			class, err = r.name(true)
			m.classes = append(m.classes, class)
		case '#':
			r.pos++
			id := attrTest{name: "id", op: '='}
			id.value, err = r.name(false)
			m.attrs = append(m.attrs, id)
		case '[':
			var t attrTest
			t, err = r.attribute()
			m.attrs = append(m.attrs, t)
		case ':':
			err = r.pseudo(&m)
		default:
			if r.pos == start {
				return m, r.unexpected()
			}
			return m, nil
		}
		if err != nil {
			return m, err
		}
	}
}

// pseudo reads :nth-child(n) or :nth-of-type(n).
func (r *selectorReader) pseudo(m *compound) error {
	start := r.pos
	r.pos++
	if r.peek() == ':' {
		return r.refuse(start, "pseudo-elements are not supported")
	}
	name, err := r.name(false)
	if err != nil {
		return err
	}
	var into *int
	switch name {
	case "nth-child":
		into = &m.nthChild
	case "nth-of-type":
		into = &m.nthOfType
	default:
		return r.refuse(start, "the pseudo-class %q is not supported; before a colon that is part of a class goes a backslash", ":"+name)
	}
	if r.peek() != '(' {
		return r.unexpected()
	}
	r.pos++
	r.space()
	from := r.pos
	for c := r.peek(); c-'0' < 10; c = r.peek() {
		r.pos++
	}
	digits := r.text[from:r.pos]
	r.space()
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || r.peek() != ')' {
		return r.refuse(from, "only a number can stand between the brackets of %q", ":"+name)
	}
	if *into >= 0 && *into != int(n) {
		return r.refuse(start, "an element has only one place: %q comes twice", ":"+name)
	}
	*into = int(n)
	r.pos++
	return nil
}

// attribute reads [name="value"], with = or ^=, *=, $=.
func (r *selectorReader) attribute() (t attrTest, err error) {
	r.pos++
	r.space()
	if t.name, err = r.name(false); err != nil {
		return t, err
	}
	r.space()
	switch c := r.peek(); {
	case c == ']':
		return t, r.refuse(r.pos, "an attribute must be compared with a value: [%s=\"…\"]", t.name)
	case c == '=':
		t.op = c
	case strings.IndexByte("^*$", c) >= 0:
		t.op = c
		r.pos++
	case c == '~' || c == '|':
		return t, r.refuse(r.pos, "%q is not supported; there are =, ^=, *= and $=", string(c)+"=")
	}
	if r.peek() != '=' {
		return t, r.unexpected()
	}
	r.pos++
	r.space()
	if t.value, err = r.operand(); err != nil {
		return t, err
	}
	r.space()
	if r.peek() != ']' {
		return t, r.unexpected()
	}
	r.pos++
	return t, nil
}
