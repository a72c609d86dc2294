package match

import (
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// compiledStep is one compiled step: what costs little is asked first.
type compiledStep struct {
	event        string
	url          *match.Pattern // nil asks nothing
	elements     *match.ElementTest
	filters      []filter // ordered by what they cost
	eventFilters int      // how many of them need nothing but the event's properties
	problem      error    // what is wrong with it; such a step never matches
}

// compile prepares a step and returns what is wrong with it: faults whose
// attr is the field of the step.
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

// compileElements compiles the conditions one by one first, so that each that
// is wrong is told, and then together.
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

// match tells whether the event passes everything the step asks for.
func (t *compiledStep) match(s *EventView, env *match.Env) match.Result {
	if t.problem != nil ||
		t.event != "" && t.event != s.event.Name ||
		t.url != nil && !t.urlMatches(s) {
		return match.False
	}
	result := match.True
	for i := range t.filters {
		if i == t.eventFilters && t.elements != nil && !t.elements.Match(&s.chain) {
			return match.False
		}
		switch t.filters[i].match(s, env) {
		case match.False:
			return match.False
		case match.Unknown:
			result = match.Unknown
		case match.True:
		}
	}
	if t.eventFilters == len(t.filters) && t.elements != nil && !t.elements.Match(&s.chain) {
		return match.False
	}
	return result
}

func (t *compiledStep) urlMatches(s *EventView) bool {
	url := s.URL()
	return url != "" && t.url.Match(url)
}

// elementSpec is what a step asks of elements.
func elementSpec(in *Step) match.ElementSpec {
	return match.ElementSpec{
		TagName: in.TagName, Text: in.Text, TextMatching: in.TextMatching,
		Href: in.Href, HrefMatching: in.HrefMatching, Selector: in.Selector,
	}
}

// elementCondition is one field of what a step asks of elements.
type elementCondition struct {
	field string
	spec  match.ElementSpec
}

// elementConditions parts what a step asks of elements into its fields, those
// that ask for nothing included.
func elementConditions(in *Step) [4]elementCondition {
	return [4]elementCondition{
		{"tag_name", match.ElementSpec{TagName: in.TagName}},
		{"text", match.ElementSpec{Text: in.Text, TextMatching: in.TextMatching}},
		{"href", match.ElementSpec{Href: in.Href, HrefMatching: in.HrefMatching}},
		{"selector", match.ElementSpec{Selector: in.Selector}},
	}
}
