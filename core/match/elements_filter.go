package match

import (
	"strings"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/text"
)

// ElementFilter is a compiled filter on the elements of an event instead of a
// property: the keys are selector, tag_name, text and href. It is immutable
// and safe for parallel use.
//
// A positive operator passes if one element of the chain passes; a negated one
// (is_not, not_icontains…) passes if all elements do. Elements without the text
// or href are ignored.
type ElementFilter struct {
	key       string
	filter    *Filter
	selectors []*Selector
	want      Result // the result of a matching selector
	problem   error
}

// CompileElementFilter prepares a filter. It fails like Compile, and with an
// Invalid fault for an unknown key or an operator that the key does not support:
// selector and tag_name support exact and is_not only.
func CompileElementFilter(s Spec, opts Options) (*ElementFilter, error) {
	f := &ElementFilter{key: s.Key}
	operator, _ := Canonical(s.Operator)
	switch s.Key {
	case "text", "href":
	case "selector", "tag_name":
		if operator != "exact" && operator != "is_not" {
			return nil, fault.Fieldf("operator", "invalid_operator", "A filter on %s takes exact and is_not only", s.Key)
		}
	default:
		return nil, fault.Fieldf("key", "invalid_input", "Elements have a selector, tag_name, text and href, not %s", text.Ellipsis(s.Key, maxQuoted))
	}
	if s.Key == "selector" {
		f.want = Of(operator == "exact")
		f.problem = f.compileSelectors(s.Value)
		return f, nil
	}
	var err error
	if f.filter, err = Compile(s, opts); err != nil {
		return nil, err
	}
	f.problem = f.filter.Problem()
	return f, nil
}

func (f *ElementFilter) compileSelectors(value []byte) error {
	v, err := fastjson.ParseBytes(value)
	if err != nil {
		return fault.Field("value", "invalid_input", "The value of a filter must be valid JSON").Because(err)
	}
	list := []*fastjson.Value{v}
	if v.Type() == fastjson.TypeArray {
		list = v.GetArray()
	}
	for _, item := range list {
		if item.Type() != fastjson.TypeString {
			return fault.Field("value", "invalid_value", "The value of a filter on selector must be a selector or a list of them")
		}
		s, err := CompileSelector(strings.Clone(view(item.GetStringBytes())))
		if err != nil {
			return fault.From(err).At("value")
		}
		f.selectors = append(f.selectors, s)
	}
	return nil
}

// Key returns the key of the filter.
func (f *ElementFilter) Key() string { return f.key }

// External reports whether a plugin evaluates this filter.
func (f *ElementFilter) External() bool { return f.filter != nil && f.filter.External() }

// Problem returns the error about the value of the filter, or nil. A filter with
// a problem passes nothing.
func (f *ElementFilter) Problem() error { return f.problem }

// Match reports whether the chain passes. A nil filter passes nothing.
func (f *ElementFilter) Match(c *Chain, env *Env) Result {
	switch {
	case f == nil:
		return False
	case f.filter != nil:
		return f.matchTexts(c, env)
	case f.problem != nil:
		return False
	}
	for _, s := range f.selectors {
		if !env.Budget.Spend(s.price() * int64(len(c.text))) {
			return Unknown
		}
		if s.Match(c) {
			return f.want
		}
	}
	return f.want.Not()
}

// matchTexts matches the text of each element that has one.
func (f *ElementFilter) matchTexts(c *Chain, env *Env) Result {
	every := f.filter.missing == True
	elements := c.Elements()
	matched, unknown := false, false
	for i := range elements {
		text := f.text(&elements[i])
		if text == "" {
			continue
		}
		matched = true
		c.value = Text(text)
		result := f.filter.Match(&c.value, env)
		if result == Of(!every) {
			return result
		}
		unknown = unknown || result == Unknown
	}
	switch {
	case !matched:
		return f.filter.missing
	case unknown:
		return Unknown
	}
	return Of(every)
}

func (f *ElementFilter) text(e *Element) string {
	switch f.key {
	case "tag_name":
		return e.Tag
	case "text":
		return e.Text
	default:
		return e.Href
	}
}
