package match

import (
	"fmt"
	"slices"

	"github.com/guidonhq/guidon/core/match"
)

// Source is what a property filter reads.
type Source string

// The sources. A filter on a feature reads the event property $feature/<key>,
// in which clients record the value of a flag.
const (
	FromEvent   Source = "event"
	FromPerson  Source = "person"
	FromGroup   Source = "group"
	FromElement Source = "element"
	FromCohort  Source = "cohort"
	FromFeature Source = "feature"
)

// filter is one compiled property filter of a step.
type filter struct {
	position int // index in the definition
	source   Source
	key      string // of an event, person or group property, of elements
	operator string
	value    []byte // as written; nil if absent
	group    int    // index of the group type

	// An operator that compares with one value has one test per listed value:
	// any of them must pass, or with matchAll (negated operators) all.
	tests        []*match.Filter
	elementTests []*match.ElementFilter
	matchAll     bool

	cohorts    []int64
	allPersons bool // one of the cohorts is that of all persons
	negate     bool // not in them
}

// external reports whether a plugin evaluates the filter.
func (f *filter) external() bool {
	return len(f.tests) > 0 && f.tests[0].External() ||
		len(f.elementTests) > 0 && f.elementTests[0].External()
}

// cost orders filters: properties of the event, its elements, facts that need
// a lookup, plugin operators.
func (f *filter) cost() int {
	cost := 0
	switch f.source {
	case FromEvent, FromFeature:
	case FromElement:
		cost = 1
	case FromGroup, FromPerson:
		cost = 2
	case FromCohort:
		cost = 3
	}
	if f.external() {
		cost += 4
	}
	return cost
}

// sortFilters sorts the filters by cost.
func (t *compiledStep) sortFilters() {
	slices.SortStableFunc(t.filters, func(a, b filter) int { return a.cost() - b.cost() })
	t.eventFilters = len(t.filters)
	if i := slices.IndexFunc(t.filters, func(f filter) bool { return f.cost() > 0 }); i >= 0 {
		t.eventFilters = i
	}
}

// membersPerUnit is how many properties of an event a search for one of them
// passes for a unit of work.
const membersPerUnit = 8

func (f *filter) match(s *EventView, env *match.Env) match.Result {
	switch f.source {
	case FromCohort:
		return f.testCohorts(s)
	case FromElement:
		return f.testElements(s, env)
	default:
		if !env.Budget.Spend(int64(len(s.props.members) / membersPerUnit)) {
			return match.Unknown
		}
		v, known := f.operand(s)
		if !known {
			return match.Unknown
		}
		return f.testValue(v, env)
	}
}

// operand returns the value that the filter compares, and whether it is known:
// its property, or an object of all properties that the program of a plugin
// reads.
func (f *filter) operand(s *EventView) (*match.Value, bool) {
	if len(f.tests) == 0 || len(f.tests[0].Reads()) == 0 {
		return f.readProperty(s, f.key)
	}
	s.joined = s.joined[:0]
	for _, name := range f.tests[0].Reads() {
		v, known := f.readProperty(s, name)
		if !known {
			return v, false
		}
		if v.Kind() != match.Missing {
			s.joined = match.AppendProperty(s.joined, 0, name, v)
		}
	}
	s.value, s.joined = match.CloseObject(s.joined, 0)
	return &s.value, true
}

// readProperty returns a property from the filter's source, and whether it is
// known.
func (f *filter) readProperty(s *EventView, name string) (*match.Value, bool) {
	switch f.source {
	case FromPerson:
		return s.personProperty(name)
	case FromGroup:
		return s.groupProperty(f.group, name)
	default:
		return s.Property(name), true
	}
}

// testValue runs the tests on a value.
func (f *filter) testValue(v *match.Value, env *match.Env) match.Result {
	return f.combine(len(f.tests), func(i int) match.Result { return f.tests[i].Match(v, env) })
}

// testElements runs the tests on the elements.
func (f *filter) testElements(s *EventView, env *match.Env) match.Result {
	return f.combine(len(f.elementTests), func(i int) match.Result { return f.elementTests[i].Match(&s.chain, env) })
}

// combine joins the results of n tests: one must be true, or with matchAll
// all.
func (f *filter) combine(n int, ask func(i int) match.Result) match.Result {
	decides := match.Of(!f.matchAll)
	result := decides.Not()
	for i := range n {
		switch ask(i) {
		case decides:
			return decides
		case match.Unknown:
			result = match.Unknown
		default:
		}
	}
	return result
}

// testCohorts reports whether the person is in any of the cohorts.
func (f *filter) testCohorts(s *EventView) match.Result {
	in := match.Of(f.allPersons)
	for _, id := range f.cohorts {
		if in == match.True {
			break
		}
		switch s.inCohort(id) {
		case match.True:
			in = match.True
		case match.Unknown:
			in = match.Unknown
		case match.False:
		}
	}
	if f.negate {
		return in.Not()
	}
	return in
}

func filterAttr(i int, field string) string {
	if field == "" {
		return fmt.Sprintf("properties__%d", i)
	}
	return fmt.Sprintf("properties__%d__%s", i, field)
}
