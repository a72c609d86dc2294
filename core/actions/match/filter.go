package match

import (
	"fmt"
	"slices"

	"github.com/guidonhq/guidon/core/match"
)

// Source is where a property filter reads.
type Source string

// The sources. A filter on a feature reads the event property
// $feature/<key>, which clients attach to say what a flag was.
const (
	OnEvent   Source = "event"
	OnPerson  Source = "person"
	OnGroup   Source = "group"
	OnElement Source = "element"
	OnCohort  Source = "cohort"
	OnFeature Source = "feature"
)

// filter is one compiled property filter of a step.
type filter struct {
	place    int // where it stands as written
	source   Source
	key      string // of an event, person or group property, of elements
	operator string
	value    []byte // as written; nil when there is none
	group    int    // index of the group type

	// A filter whose operator takes one value and that lists several is one
	// test a value: any of them has to pass, or all when it asks for the
	// opposite of something.
	tests    []*match.Filter
	elements []*match.ElementFilter
	all      bool

	cohorts  []int64
	everyone bool // of the cohorts: all people
	negate   bool // not in them
}

// external reports whether a plugin answers for the filter.
func (f *filter) external() bool {
	return len(f.tests) > 0 && f.tests[0].External() ||
		len(f.elements) > 0 && f.elements[0].External()
}

// cost orders filters: properties of the event, its elements, whom somebody
// has to be asked about, what a plugin answers.
func (f *filter) cost() int {
	cost := 0
	switch f.source {
	case OnEvent, OnFeature:
	case OnElement:
		cost = 1
	case OnGroup, OnPerson:
		cost = 2
	case OnCohort:
		cost = 3
	}
	if f.external() {
		cost += 4
	}
	return cost
}

// order sorts the filters by cost.
func (t *step) order() {
	slices.SortStableFunc(t.filters, func(a, b filter) int { return a.cost() - b.cost() })
	t.cheap = len(t.filters)
	if i := slices.IndexFunc(t.filters, func(f filter) bool { return f.cost() > 0 }); i >= 0 {
		t.cheap = i
	}
}

func (f *filter) match(s *Seen, env *match.Env) match.Result {
	switch f.source {
	case OnCohort:
		return f.cohort(s)
	case OnElement:
		return f.element(s, env)
	default:
		v, known := f.seen(s)
		if !known {
			return match.Unknown
		}
		return f.test(v, env)
	}
}

// seen returns what the filter looks at, and whether it is known: its property,
// or all those that the program of a plugin reads.
func (f *filter) seen(s *Seen) (*match.Value, bool) {
	if len(f.tests) == 0 || len(f.tests[0].Reads()) == 0 {
		return f.read(s, f.key)
	}
	s.several = s.several[:0]
	for _, name := range f.tests[0].Reads() {
		v, known := f.read(s, name)
		if !known {
			return v, false
		}
		if v.Kind() != match.Missing {
			s.several = match.AppendProperty(s.several, 0, name, v)
		}
	}
	s.value, s.several = match.CloseObject(s.several, 0)
	return &s.value, true
}

// read returns a property from where the filter reads, and whether it is known.
func (f *filter) read(s *Seen, name string) (*match.Value, bool) {
	switch f.source {
	case OnPerson:
		return s.personProperty(name)
	case OnGroup:
		return s.groupProperty(f.group, name)
	default:
		return s.Property(name), true
	}
}

// test asks the tests about a value.
func (f *filter) test(v *match.Value, env *match.Env) match.Result {
	return f.gather(len(f.tests), func(i int) match.Result { return f.tests[i].Match(v, env) })
}

// element asks the tests about the elements.
func (f *filter) element(s *Seen, env *match.Env) match.Result {
	return f.gather(len(f.elements), func(i int) match.Result { return f.elements[i].Match(&s.chain, env) })
}

// gather makes one answer of n: one that passes will do, or all have to.
func (f *filter) gather(n int, ask func(i int) match.Result) match.Result {
	decides := match.Of(!f.all)
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

// cohort tells whether the person is in one of the cohorts.
func (f *filter) cohort(s *Seen) match.Result {
	in := match.Of(f.everyone)
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
