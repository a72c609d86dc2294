package match

import (
	"slices"

	"github.com/guidonhq/guidon/core/match"
)

// Needs are the facts that a definition can read. Lists are sorted and without
// duplicates.
type Needs struct {
	// Event, Person and Groups are the names of the properties it reads; a
	// feature is $feature/<key>, a URL $current_url. Groups is by index of the
	// group type.
	Event   []string
	Person  []string
	Groups  map[int][]string
	Cohorts []int64
	// Elements reports whether it reads the element chain.
	Elements bool
	// Operators are the ids of the plugin operators it uses.
	Operators []string
}

// NeedsLookup reports whether the event alone cannot decide the definition.
func (n *Needs) NeedsLookup() bool {
	return len(n.Person)+len(n.Groups)+len(n.Cohorts)+len(n.Operators) > 0
}

// Needs returns what the definition can read, over all its steps.
func (m *Matcher) Needs() Needs {
	var n Needs
	n.add(m)
	n.normalize()
	return n
}

func (n *Needs) add(m *Matcher) {
	for i := range m.steps {
		t := &m.steps[i]
		if t.problem != nil {
			continue
		}
		if t.url != nil {
			n.Event = append(n.Event, "$current_url")
		}
		n.Elements = n.Elements || t.elements != nil
		for j := range t.filters {
			n.addFilter(&t.filters[j])
		}
	}
}

func (n *Needs) addFilter(f *filter) {
	switch f.source {
	case FromEvent, FromFeature:
		n.Event = append(n.Event, f.key)
	case FromPerson:
		n.Person = append(n.Person, f.key)
	case FromGroup:
		if n.Groups == nil {
			n.Groups = map[int][]string{}
		}
		n.Groups[f.group] = append(n.Groups[f.group], f.key)
	case FromElement:
		n.Elements = true
	case FromCohort:
		n.Cohorts = append(n.Cohorts, f.cohorts...)
	}
	if f.external() {
		n.Operators = append(n.Operators, f.operator)
	}
}

func (n *Needs) normalize() {
	for _, list := range []*[]string{&n.Event, &n.Person, &n.Operators} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	for index, list := range n.Groups {
		slices.Sort(list)
		n.Groups[index] = slices.Compact(list)
	}
	slices.Sort(n.Cohorts)
	n.Cohorts = slices.Compact(n.Cohorts)
}

// StepConditions are the conditions of one step, for callers that evaluate
// some of them by other means, such as a query: every condition must hold.
// Match decides what such a query leaves open.
type StepConditions struct {
	Event       string // "" is any
	URL         string // "" is any
	URLMatching match.Matching
	Elements    match.ElementSpec
	Filters     []FilterConditions // by cost
}

// FilterConditions is one property filter.
type FilterConditions struct {
	Source     Source
	Key        string // as it is read: $feature/<key> for a feature
	Operator   string // its own name; that of a plugin operator has a slash
	Value      []byte // JSON, or nil
	Group      int    // of OnGroup: the index of the group type
	Cohorts    []int64
	AllPersons bool // of OnCohort: the cohort of all people is among them
	Negate     bool // of OnCohort: not in them
	External   bool // a plugin answers
}

// HasElements reports whether the step has conditions on elements.
func (c *StepConditions) HasElements() bool {
	e := &c.Elements
	return e.TagName != "" || e.Text != "" || e.Href != "" || e.Selector != ""
}

// Steps returns the conditions of each step. It leaves out invalid steps.
func (m *Matcher) Steps() []StepConditions {
	var out []StepConditions
	for i := range m.steps {
		t := &m.steps[i]
		if t.problem != nil {
			continue
		}
		in := &m.source[i]
		way, _ := match.ParseMatching(in.URLMatching, match.Contains)
		c := StepConditions{Event: in.Event, URL: in.URL, URLMatching: way, Elements: elementSpec(in)}
		for j := range t.filters {
			c.Filters = append(c.Filters, t.filters[j].conditions())
		}
		out = append(out, c)
	}
	return out
}

func (f *filter) conditions() FilterConditions {
	name, _ := match.Canonical(f.operator)
	return FilterConditions{
		Source: f.source, Key: f.key, Operator: name, Value: f.value, Group: f.group,
		Cohorts: f.cohorts, AllPersons: f.allPersons, Negate: f.negate, External: f.external(),
	}
}
