package match

import (
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// Lookup knows what an event does not carry: its person, its groups and the
// cohorts of its person. A Seen asks for each at most once an event, and only
// when a definition cannot be decided without it. What cannot be told (known
// is false, or the result Unknown) makes the answers that depend on it
// Unknown and is noted; see Wanted.
//
// Answers are read before the next call and not kept.
type Lookup interface {
	// Person returns the properties of the event's person, a JSON object; nil
	// for somebody of whom nothing is known.
	Person(s *EventView) (properties []byte, known bool)
	// Group returns the event's group of a type. Key is what the event says
	// in $group_<index>; when that is empty the event has $groups, and only
	// whoever knows which type has the index can tell the key.
	Group(s *EventView, index int, key string) (group Group, known bool)
	// Cohort tells whether the event's person is in a cohort.
	Cohort(s *EventView, id int64) match.Result
}

// Group is one group as filters see it; the zero Group is none.
type Group struct {
	Key        string
	Properties []byte // a JSON object, or nil
}

// MissingFacts is what matchers asked for about an event and nobody could tell. Who
// matches many events lets a first round say Unknown, reads for all of them
// what was wanted, hands it over (SetPerson, SetGroup, SetCohort, or a Lookup)
// and matches those again.
type MissingFacts struct {
	Person  bool
	Groups  []int // indexes of group types
	Cohorts []int64
}

// Any reports whether anything was wanted.
func (w MissingFacts) Any() bool { return w.Person || len(w.Groups)+len(w.Cohorts) > 0 }

// EventView is one event as matchers look at it. Its properties and its elements
// are read when the first matcher asks for one, and then once. It is used for
// one event after the other: Reset keeps the memory, so in the long run
// looking allocates nothing. A Seen belongs to one goroutine; the zero Seen
// needs a Reset.
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

	value match.Value // the one under test
	arena []byte

	joined []byte // properties that a plugin looks at together
}

// Reset makes s the view of ev, which must not change while it is looked at.
// Everything known about the event before is forgotten; the Lookup stays.
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

// SetLookup makes l the one who is asked for what events do not carry; nil is
// nobody.
func (s *EventView) SetLookup(l Lookup) { s.lookup = l }

// Event returns the event that s looks at.
func (s *EventView) Event() *sdk.Event { return s.event }

// Chain returns the event's elements.
func (s *EventView) Chain() *match.Chain { return &s.chain }

// Property returns a property of the event; one that is not there is Missing.
// It is valid until s is used again.
func (s *EventView) Property(name string) *match.Value { return s.valueOf(&s.props, name) }

// URL is the address the event happened at, or "".
func (s *EventView) URL() string {
	if !s.urlRead {
		s.urlRead = true
		s.url = s.props.text("$current_url")
	}
	return s.url
}

// Missing returns what was asked about the event since Reset and is not known.
// It is valid until the next Reset.
func (s *EventView) Missing() MissingFacts { return s.missing }

func (s *EventView) valueOf(o *jsonObject, name string) *match.Value {
	s.value, s.arena = match.FromJSON(o.get(name), s.arena[:0])
	return &s.value
}
