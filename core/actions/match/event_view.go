package match

import (
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// Lookup reads what an event does not carry: its person, its groups and the
// cohorts of its person. An EventView calls each method at most once per event
// and fact, and only if a definition cannot be decided without it. If a fact
// is not known (known is false, or the result is Unknown), results that depend
// on it are Unknown and the fact is listed; see MissingFacts.
//
// Returned values are used before the next call and not kept.
type Lookup interface {
	// Person returns the properties of the event's person, a JSON object, or
	// nil for a person without stored properties.
	Person(s *EventView) (properties []byte, known bool)
	// Group returns the event's group of a type. key is the event's
	// $group_<index>; if it is empty, the event has $groups, and the Lookup
	// finds the key by the name of the type.
	Group(s *EventView, index int, key string) (group Group, known bool)
	// Cohort reports whether the event's person is in a cohort.
	Cohort(s *EventView, id int64) match.Result
}

// Group is one group as filters see it; the zero Group is none.
type Group struct {
	Key        string
	Properties []byte // a JSON object, or nil
}

// MissingFacts are the facts that matchers needed for an event and that are
// not known. To match many events, a caller runs a first round, reads the
// missing facts of all events, sets them (SetPerson, SetGroup, SetCohort, or a
// Lookup) and matches the events with Unknown results again.
type MissingFacts struct {
	Person  bool
	Groups  []int // indexes of group types
	Cohorts []int64
}

// Any reports whether any fact is missing.
func (w MissingFacts) Any() bool { return w.Person || len(w.Groups)+len(w.Cohorts) > 0 }

// EventView is the view that matchers have of one event. It parses properties
// and elements when the first matcher needs them, and once. It is reused for
// one event after the other: Reset keeps its buffers, so that matching
// allocates nothing in the long run. It is not safe for concurrent use. The
// zero EventView needs a Reset.
type EventView struct {
	event   *sdk.Event
	lookup  Lookup
	props   jsonObject
	chain   match.Chain
	url     string
	urlRead bool

	person  factObject
	groups  []groupFacts
	cohorts []membership
	missing MissingFacts

	value match.Value // the value under test
	arena []byte

	joined []byte // the properties that one plugin program reads
}

// Reset makes s the view of ev, which must not change while s is in use. It
// drops all facts of the event before and keeps the Lookup.
func (s *EventView) Reset(ev *sdk.Event) {
	s.event = ev
	s.props.reset(ev.Properties)
	s.chain.Reset(ev.ElementsChain)
	s.url, s.urlRead = "", false
	s.person.known, s.person.requested = false, false
	s.groups, s.cohorts = s.groups[:0], s.cohorts[:0]
	s.missing = MissingFacts{Groups: s.missing.Groups[:0], Cohorts: s.missing.Cohorts[:0]}
	if cap(s.arena) > maxKeptBytes {
		s.arena = nil
	}
}

// SetLookup sets the source of facts that events do not carry; nil has no
// facts.
func (s *EventView) SetLookup(l Lookup) { s.lookup = l }

// Event returns the event of the view.
func (s *EventView) Event() *sdk.Event { return s.event }

// Chain returns the event's elements.
func (s *EventView) Chain() *match.Chain { return &s.chain }

// Property returns a property of the event, of kind Missing if the event does
// not have it. The value is valid until the next call of a method of s.
func (s *EventView) Property(name string) *match.Value { return s.valueOf(&s.props, name) }

// URL returns $current_url, or "". The text is valid until the next Reset.
func (s *EventView) URL() string {
	if !s.urlRead {
		s.urlRead = true
		s.url = s.props.text("$current_url")
	}
	return s.url
}

// Missing returns the facts that were needed since Reset and are not known.
// The result is valid until the next Reset.
func (s *EventView) Missing() MissingFacts { return s.missing }

func (s *EventView) valueOf(o *jsonObject, name string) *match.Value {
	s.value, s.arena = match.FromJSON(o.get(name), s.arena[:0])
	return &s.value
}
