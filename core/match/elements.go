package match

import "github.com/guidonhq/guidon/core/fault"

// ElementSpec is the source of the conditions of a step on the clicked element
// and its ancestors. An empty field is no condition.
type ElementSpec struct {
	TagName      string
	Text         string
	TextMatching string // exact when empty
	Href         string
	HrefMatching string // exact when empty
	Selector     string
}

// ElementTest is a compiled ElementSpec. It is immutable and safe for
// parallel use.
type ElementTest struct {
	tag      string
	text     *Pattern
	href     *Pattern
	element  bool // has a condition on one element
	anything bool // has no selector
	selector *Selector
	never    bool
}

// CompileElements prepares the conditions. The error about an unusable condition
// is an Invalid fault at its field; the test is valid then, too, and passes
// nothing.
func CompileElements(s ElementSpec) (*ElementTest, error) {
	t := &ElementTest{
		tag:      s.TagName,
		element:  s.TagName != "" || s.Text != "" || s.Href != "",
		anything: s.Selector == "",
	}
	var problem error
	note := func(err error, field string) {
		if f := fault.From(err); f != nil && problem == nil {
			problem = f.At(field)
		}
	}
	pattern := func(text, matching, field string) *Pattern {
		way, err := ParseMatching(matching, Exact)
		note(err, field+"_matching")
		if text == "" {
			return nil
		}
		p, err := CompilePattern(text, way, true)
		note(err, field)
		return p
	}
	t.text = pattern(s.Text, s.TextMatching, "text")
	t.href = pattern(s.Href, s.HrefMatching, "href")
	if !t.anything {
		var err error
		t.selector, err = CompileSelector(s.Selector)
		note(err, "selector")
	}
	t.never = problem != nil
	return t, problem
}

// Always reports whether the test has no condition: every chain passes, also an
// empty one.
func (t *ElementTest) Always() bool { return !t.never && !t.element && t.anything }

// Spend takes the work of matching c from b, and reports whether it was there. A
// nil Budget has no end.
func (t *ElementTest) Spend(b *Budget, c *Chain) bool {
	if t.never || b == nil {
		return true
	}
	n := len(c.text)
	return t.text.Spend(b, n) && t.href.Spend(b, n) && b.Spend(t.selector.price()*int64(n))
}

// Match reports whether one element has the tag, the text and the href, and
// whether the selector matches this or another element.
func (t *ElementTest) Match(c *Chain) bool {
	switch {
	case t.never:
		return false
	case t.element && !t.any(c.Elements()):
		return false
	}
	return t.anything || t.selector.Match(c)
}

func (t *ElementTest) any(elements []Element) bool {
	for i := range elements {
		e := &elements[i]
		if (t.tag == "" || t.tag == e.Tag) &&
			(t.text == nil || e.Text != "" && t.text.Match(e.Text)) &&
			(t.href == nil || e.Href != "" && t.href.Match(e.Href)) {
			return true
		}
	}
	return false
}
