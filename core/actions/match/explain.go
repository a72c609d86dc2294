package match

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// Explanation is the result of a definition for one event, with the reasons.
type Explanation struct {
	// Matches is nil for Unknown.
	Matches *bool             `json:"matches"`
	Steps   []StepExplanation `json:"steps"`
}

// StepExplanation is the result of one step: it matches if all its fields do.
// Fields without a condition are left out.
type StepExplanation struct {
	ID      string             `json:"id,omitempty"`
	Name    string             `json:"name,omitempty"`
	Matches *bool              `json:"matches"`
	Fields  []FieldExplanation `json:"fields"`
}

// FieldExplanation is the result of one condition of a step.
type FieldExplanation struct {
	// Field is the name of the condition. "element" stands for tag_name, text
	// and href together, which one element must have; "properties" for one
	// property filter.
	Field string `json:"field"`
	// Attr is the path of the condition in the definition, as in errors.
	Attr string `json:"attr"`
	// Matching is the comparison: a mode or an operator.
	Matching string `json:"matching,omitempty"`
	// Source, Key and Group are what a property filter reads.
	Source Source `json:"type,omitempty"`
	Key    string `json:"key,omitempty"`
	Group  *int   `json:"group_type_index,omitempty"`
	// Expected is the value of the condition, Seen the value of the event. Seen
	// is absent if the event has none or if it is not known. Long texts are
	// truncated.
	Expected json.RawMessage `json:"expected,omitempty"`
	Seen     json.RawMessage `json:"seen,omitempty"`
	Hidden   bool            `json:"hidden,omitempty"` // Seen is removed, see HideStored
	Matches  *bool           `json:"matches"`
	// Reason is a sentence on why the condition does not match.
	Reason string `json:"reason,omitempty"`
}

// HideStored removes the values that filters tested on stored properties of
// persons, or of groups, and marks them as hidden.
func (e *Explanation) HideStored(persons, groups bool) {
	for i := range e.Steps {
		for j := range e.Steps[i].Fields {
			f := &e.Steps[i].Fields[j]
			if f.Seen != nil && (f.Source == FromPerson && persons || f.Source == FromGroup && groups) {
				f.Seen, f.Hidden = nil, true
			}
		}
	}
}

// Explain returns the result of Match with the result of each field. It tests
// all fields, also those that Match skips.
func (m *Matcher) Explain(s *EventView, env *match.Env) Explanation {
	out := Explanation{Steps: make([]StepExplanation, len(m.steps))}
	result := match.False
	for i := range m.steps {
		e := explainer{view: s, env: env, step: &m.steps[i], in: &m.source[i], index: i}
		var r match.Result
		out.Steps[i], r = e.explain()
		result = or(result, r)
	}
	out.Matches = boolOf(result)
	return out
}

// or is the disjunction, and the conjunction of two results.
func or(a, b match.Result) match.Result { return and(a.Not(), b.Not()).Not() }

func and(a, b match.Result) match.Result {
	switch {
	case a == match.False || b == match.False:
		return match.False
	case a == match.Unknown || b == match.Unknown:
		return match.Unknown
	}
	return match.True
}

// boolOf is a result in its JSON form.
func boolOf(r match.Result) *bool {
	if r == match.Unknown {
		return nil
	}
	yes := r == match.True
	return &yes
}

// explainer explains one step.
type explainer struct {
	view   *EventView
	env    *match.Env
	step   *compiledStep
	in     *Step
	index  int
	fields []FieldExplanation
	result match.Result
}

func (e *explainer) explain() (StepExplanation, match.Result) {
	e.fields, e.result = []FieldExplanation{}, match.True
	if e.step.problem != nil {
		e.addProblem()
	} else {
		e.addEvent()
		e.addURL()
		e.addElements()
		e.addFilters()
	}
	return StepExplanation{ID: e.in.ID, Name: e.in.Name, Matches: boolOf(e.result), Fields: e.fields}, e.result
}

func (e *explainer) add(f FieldExplanation, r match.Result) {
	if f.Attr == "" {
		f.Attr = attrOf(e.index, f.Field)
	}
	f.Matches = boolOf(r)
	if r == match.True {
		f.Reason = ""
	}
	e.result = and(e.result, r)
	e.fields = append(e.fields, f)
}

// addProblem explains a stored step that is invalid.
func (e *explainer) addProblem() {
	f := fault.From(e.step.problem)
	e.add(FieldExplanation{Field: fieldOf(f.Attr), Attr: attrOf(e.index, f.Attr), Reason: f.Detail}, match.False)
}

func fieldOf(attr string) string {
	for i := 0; i+1 < len(attr); i++ {
		if attr[i] == '_' && attr[i+1] == '_' {
			return attr[:i]
		}
	}
	return attr
}

func (e *explainer) addEvent() {
	if e.in.Event == "" {
		return
	}
	name := e.view.event.Name
	e.add(FieldExplanation{
		Field: "event", Matching: string(match.Exact), Expected: quoteJSON(e.in.Event), Seen: quoteJSON(name),
		Reason: "The event has another name.",
	}, match.Of(name == e.in.Event))
}

func (e *explainer) addURL() {
	if e.step.url == nil {
		return
	}
	way, _ := match.ParseMatching(e.in.URLMatching, match.Contains)
	f := FieldExplanation{Field: "url", Matching: string(way), Expected: quoteJSON(e.in.URL), Reason: "The event has no $current_url."}
	if url := e.view.URL(); url != "" {
		f.Seen, f.Reason = quoteJSON(url), reasons[way]
	}
	r := e.step.matchURL(e.view, e.env)
	if r == match.Unknown {
		f.Reason = tooExpensive
	}
	e.add(f, r)
}

var reasons = map[match.Matching]string{
	match.Exact:    "It is another text.",
	match.Contains: "It does not contain the text.",
	match.Regex:    "The pattern is not found in it.",
}

func (e *explainer) addFilters() {
	byPlace := slices.Clone(e.step.filters)
	slices.SortFunc(byPlace, func(a, b filter) int { return a.position - b.position })
	for i := range byPlace {
		e.addFilter(&byPlace[i])
	}
}

func (e *explainer) addFilter(f *filter) {
	out := FieldExplanation{
		Field: "properties", Attr: attrOf(e.index, "properties__"+strconv.Itoa(f.position)),
		Source: f.source, Key: f.key, Matching: f.conditions().Operator, Expected: truncateJSON(f.value),
	}
	if f.source == FromGroup {
		out.Group = &f.group
	}
	r := f.match(e.view, e.env)
	out.Seen = e.observedValue(f)
	out.Reason = f.mismatchReason(r, out.Seen, e.env.Budget != nil && e.env.Budget.Refusal() != match.NotRefused)
	e.add(out, r)
}

// observedValue is the JSON of the value that a filter compares, nil if
// absent.
func (e *explainer) observedValue(f *filter) json.RawMessage {
	switch f.source {
	case FromCohort:
		return nil
	case FromElement:
		return elementTexts(e.view.chain.Elements(), f.key)
	default:
		v, known := f.operand(e.view)
		if !known || v.Kind() == match.Missing {
			return nil
		}
		return truncateJSON(v.AppendTo(nil))
	}
}

// tooExpensive is the reason of a condition that a budget refused.
const tooExpensive = "Comparing it takes more work than one event may cause: the text is too long for the condition."

// mismatchReason is why a filter does not match.
func (f *filter) mismatchReason(r match.Result, seen json.RawMessage, overBudget bool) string {
	switch {
	case r == match.Unknown && !f.external() && overBudget:
		return tooExpensive
	case r == match.Unknown && f.external():
		return "The result is not known: a plugin decides, and it gave no answer, or the value is not known."
	case r == match.Unknown:
		return map[Source]string{
			FromPerson: "The properties of the person are not known.",
			FromGroup:  "The properties of the group are not known.",
			FromCohort: "It is not known whether the person is in the cohort.",
		}[f.source]
	case f.source == FromCohort && f.negate:
		return "The person is in the cohort."
	case f.source == FromCohort:
		return "The person is not in the cohort."
	case seen == nil && f.source == FromElement:
		return "No element has one."
	case seen == nil:
		return "There is no such property."
	}
	return "The value does not pass."
}
