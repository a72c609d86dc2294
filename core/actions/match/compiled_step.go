package match

import (
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// compiledStep is a step prepared for matching. Cheap conditions are tested
// first.
type compiledStep struct {
	event        string
	url          *match.Pattern // nil matches every URL
	elements     *match.ElementTest
	filters      []filter // ordered by cost
	eventFilters int      // number of filters that read only the event's properties
	problem      error    // why it is invalid; an invalid step never matches
}

// compile prepares a step and returns its problems: faults whose attr is the
// field of the step.
func (t *compiledStep) compile(in *Step, opts CompileOptions) (problems []error) {
	note := func(err error, field string) {
		if f := fault.From(err); f != nil {
			problems = append(problems, f.At(field))
		}
	}
	t.event = in.Event
	way, err := match.ParseMatching(in.URLMatching, match.Contains)
	note(err, "url_matching")
	if in.URL != "" && err == nil {
		t.url, err = match.CompilePattern(in.URL, way, false)
		note(err, "url")
	}
	for _, err := range t.compileElements(in) {
		note(err, err.Attr)
	}
	for i, raw := range in.Properties {
		f, err := compileFilter(raw, opts)
		if err != nil {
			note(err, filterAttr(i, fault.From(err).Attr))
			continue
		}
		f.position = i
		t.filters = append(t.filters, f)
	}
	t.sortFilters()
	if len(problems) > 0 {
		t.problem = problems[0]
	}
	return problems
}

// compileElements compiles the element conditions one by one, so that each
// invalid one is reported, and then together.
func (t *compiledStep) compileElements(in *Step) (problems []*fault.Error) {
	for _, c := range elementConditions(in) {
		if _, err := match.CompileElements(c.spec); err != nil {
			problems = append(problems, fault.From(err))
		}
	}
	all, err := match.CompileElements(elementSpec(in))
	if err == nil && !all.Always() {
		t.elements = all
	}
	return problems
}

// match reports whether the event passes every condition of the step.
func (t *compiledStep) match(s *EventView, env *match.Env) match.Result {
	if t.problem != nil || t.event != "" && t.event != s.event.Name {
		return match.False
	}
	result := t.matchURL(s, env)
	if result == match.False {
		return match.False
	}
	for i := range t.filters {
		if i == t.eventFilters {
			if result = and(result, t.matchElements(s, env)); result == match.False {
				return match.False
			}
		}
		switch t.filters[i].match(s, env) {
		case match.False:
			return match.False
		case match.Unknown:
			result = match.Unknown
		case match.True:
		}
	}
	if t.eventFilters == len(t.filters) {
		result = and(result, t.matchElements(s, env))
	}
	return result
}

// matchURL matches the URL; Unknown is more work than the budget has.
func (t *compiledStep) matchURL(s *EventView, env *match.Env) match.Result {
	if t.url == nil {
		return match.True
	}
	url := s.URL()
	switch {
	case url == "":
		return match.False
	case !t.url.Spend(env.Budget, len(url)):
		return match.Unknown
	}
	return match.Of(t.url.Match(url))
}

// matchElements is matchURL for the elements.
func (t *compiledStep) matchElements(s *EventView, env *match.Env) match.Result {
	if t.elements == nil {
		return match.True
	}
	return matchChain(t.elements, s, env)
}

func matchChain(test *match.ElementTest, s *EventView, env *match.Env) match.Result {
	if !test.Spend(env.Budget, &s.chain) {
		return match.Unknown
	}
	return match.Of(test.Match(&s.chain))
}

// elementSpec is the conditions of a step on elements.
func elementSpec(in *Step) match.ElementSpec {
	return match.ElementSpec{
		TagName: in.TagName, Text: in.Text, TextMatching: in.TextMatching,
		Href: in.Href, HrefMatching: in.HrefMatching, Selector: in.Selector,
	}
}

// elementCondition is one field of the conditions on elements.
type elementCondition struct {
	field string
	spec  match.ElementSpec
}

// elementConditions splits the conditions on elements into fields, empty ones
// included.
func elementConditions(in *Step) [4]elementCondition {
	return [4]elementCondition{
		{"tag_name", match.ElementSpec{TagName: in.TagName}},
		{"text", match.ElementSpec{Text: in.Text, TextMatching: in.TextMatching}},
		{"href", match.ElementSpec{Href: in.Href, HrefMatching: in.HrefMatching}},
		{"selector", match.ElementSpec{Selector: in.Selector}},
	}
}
