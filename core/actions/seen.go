package actions

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

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
	Person(s *Seen) (properties []byte, known bool)
	// Group returns the event's group of a type. Key is what the event says
	// in $group_<index>; when that is empty the event has $groups, and only
	// whoever knows which type has the index can tell the key.
	Group(s *Seen, index int, key string) (group Group, known bool)
	// Cohort tells whether the event's person is in a cohort.
	Cohort(s *Seen, id int64) match.Result
}

// Group is one group as filters see it; the zero Group is none.
type Group struct {
	Key        string
	Properties []byte // a JSON object, or nil
}

// Wanted is what matchers asked for about an event and nobody could tell. Who
// matches many events lets a first round say Unknown, reads for all of them
// what was wanted, hands it over (SetPerson, SetGroup, SetCohort, or a Lookup)
// and matches those again.
type Wanted struct {
	Person  bool
	Groups  []int // indexes of group types
	Cohorts []int64
}

// Any reports whether anything was wanted.
func (w Wanted) Any() bool { return w.Person || len(w.Groups)+len(w.Cohorts) > 0 }

// Seen is one event as matchers look at it. Its properties and its elements
// are read when the first matcher asks for one, and then once. It is used for
// one event after the other: Reset keeps the memory, so in the long run
// looking allocates nothing. A Seen belongs to one goroutine; the zero Seen
// needs a Reset.
type Seen struct {
	event   *sdk.Event
	lookup  Lookup
	props   object
	chain   match.Chain
	url     string
	urlRead bool

	person  subject
	groups  []groupSubject
	cohorts []membership
	wanted  Wanted

	value match.Value // the one under test
	arena []byte
}

// subject is somebody's properties and whether they are known.
type subject struct {
	object
	known, asked bool
}

type groupSubject struct {
	subject
	index int
	key   string
}

type membership struct {
	id     int64
	result match.Result
}

// Reset makes s the view of ev, which must not change while it is looked at.
// Everything known about the event before is forgotten; the Lookup stays.
func (s *Seen) Reset(ev *sdk.Event) {
	s.event = ev
	s.props.reset(ev.Properties)
	s.chain.Reset(ev.ElementsChain)
	s.url, s.urlRead = "", false
	s.person.known, s.person.asked = false, false
	s.groups, s.cohorts = s.groups[:0], s.cohorts[:0]
	s.wanted = Wanted{Groups: s.wanted.Groups[:0], Cohorts: s.wanted.Cohorts[:0]}
	if cap(s.arena) > keptBytes {
		s.arena = nil
	}
}

// Ask makes l the one who is asked for what events do not carry; nil is
// nobody.
func (s *Seen) Ask(l Lookup) { s.lookup = l }

// Event returns the event that s looks at.
func (s *Seen) Event() *sdk.Event { return s.event }

// Chain returns the event's elements.
func (s *Seen) Chain() *match.Chain { return &s.chain }

// Property returns a property of the event; one that is not there is Missing.
// It is valid until s is used again.
func (s *Seen) Property(name string) *match.Value { return s.of(&s.props, name) }

// URL is the address the event happened at, or "".
func (s *Seen) URL() string {
	if !s.urlRead {
		s.urlRead = true
		s.url = s.props.text("$current_url")
	}
	return s.url
}

// Wanted returns what was asked about the event since Reset and is not known.
// It is valid until the next Reset.
func (s *Seen) Wanted() Wanted { return s.wanted }

// SetPerson says what is known of the event's person: a JSON object, or nil
// for nothing. It is copied.
func (s *Seen) SetPerson(properties []byte) {
	s.person.reset(properties)
	s.person.keep()
	s.person.known, s.person.asked, s.wanted.Person = true, true, false
}

// SetGroup says what is known of the event's group of a type. Its properties
// are copied.
func (s *Seen) SetGroup(index int, g Group) {
	at := s.group(index)
	at.set(g)
	if i := slices.Index(s.wanted.Groups, index); i >= 0 {
		s.wanted.Groups = slices.Delete(s.wanted.Groups, i, i+1)
	}
}

// SetCohort says whether the event's person is in a cohort.
func (s *Seen) SetCohort(id int64, r match.Result) {
	if i := slices.Index(s.wanted.Cohorts, id); i >= 0 && r != match.Unknown {
		s.wanted.Cohorts = slices.Delete(s.wanted.Cohorts, i, i+1)
	}
	for i := range s.cohorts {
		if s.cohorts[i].id == id {
			s.cohorts[i].result = r
			return
		}
	}
	s.cohorts = append(s.cohorts, membership{id, r})
}

func (s *Seen) of(o *object, name string) *match.Value {
	s.value, s.arena = match.FromJSON(o.get(name), s.arena[:0])
	return &s.value
}

// personProperty returns a property of the person, and whether it is known.
func (s *Seen) personProperty(name string) (*match.Value, bool) {
	if !s.person.asked {
		s.person.asked = true
		if s.lookup != nil {
			if raw, ok := s.lookup.Person(s); ok {
				s.SetPerson(raw)
			}
		}
		s.wanted.Person = !s.person.known
	}
	if !s.person.known {
		return nil, false
	}
	return s.of(&s.person.object, name), true
}

// groupProperty returns a property of a group, and whether it is known.
func (s *Seen) groupProperty(index int, name string) (*match.Value, bool) {
	at := s.group(index)
	if !at.asked {
		s.askGroup(at)
	}
	switch {
	case !at.known:
		return nil, false
	case name == "$group_key" && at.key != "":
		s.value = match.Text(at.key)
		return &s.value, true
	}
	return s.of(&at.object, name), true
}

// group returns the place of a group, empty when it has not been asked for.
func (s *Seen) group(index int) *groupSubject {
	for i := range s.groups {
		if s.groups[i].index == index {
			return &s.groups[i]
		}
	}
	n := len(s.groups)
	if n < cap(s.groups) {
		s.groups = s.groups[:n+1]
	} else {
		s.groups = append(s.groups, groupSubject{})
	}
	at := &s.groups[n]
	at.index, at.key, at.known, at.asked = index, "", false, false
	return at
}

func (s *Seen) askGroup(at *groupSubject) {
	at.asked = true
	var buf [32]byte
	name := append(buf[:0], "$group_"...)
	v := s.of(&s.props, view(strconv.AppendInt(name, int64(at.index), 10)))
	key := v.Identifier()
	if v.Kind() != match.String {
		key = strings.Clone(key) // a number's text does not outlive the next question
	}
	if key == "" && s.props.get("$groups") == nil {
		at.set(Group{})
		return
	}
	if s.lookup != nil {
		if g, ok := s.lookup.Group(s, at.index, key); ok {
			at.set(g)
			return
		}
	}
	s.wanted.Groups = append(s.wanted.Groups, at.index)
}

func (g *groupSubject) set(to Group) {
	g.reset(to.Properties)
	g.keep()
	g.key, g.known, g.asked = to.Key, true, true
}

// inCohort tells whether the person is in a cohort, asking once.
func (s *Seen) inCohort(id int64) match.Result {
	for i := range s.cohorts {
		if s.cohorts[i].id == id {
			return s.cohorts[i].result
		}
	}
	r := match.Unknown
	if s.lookup != nil {
		r = s.lookup.Cohort(s, id)
	}
	if r == match.Unknown {
		s.wanted.Cohorts = append(s.wanted.Cohorts, id)
	}
	s.cohorts = append(s.cohorts, membership{id, r})
	return r
}

// groupOf returns the key of the event's group of a type, as $groups names
// it, or "".
func (s *Seen) groupOf(typeName string) string {
	groups := s.props.get("$groups")
	if groups == nil || groups.Type() != fastjson.TypeObject {
		return ""
	}
	v, _ := match.FromJSON(groups.Get(typeName), nil)
	return v.Identifier()
}
