package match

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

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
