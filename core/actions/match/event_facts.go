package match

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/match"
)

// factObject is a JSON object of properties that may not be known.
type factObject struct {
	jsonObject
	known, requested bool
}

type groupFacts struct {
	factObject
	index int
	key   string
}

type membership struct {
	id     int64
	result match.Result
}

// SetPerson sets the properties of the event's person: a JSON object, or nil
// for none. s keeps a copy.
func (s *EventView) SetPerson(properties []byte) {
	s.person.reset(properties)
	s.person.copyRaw()
	s.person.known, s.person.requested, s.missing.Person = true, true, false
}

// SetGroup sets the event's group of a type. s keeps a copy of its properties.
func (s *EventView) SetGroup(index int, g Group) {
	at := s.group(index)
	at.set(g)
	if i := slices.Index(s.missing.Groups, index); i >= 0 {
		s.missing.Groups = slices.Delete(s.missing.Groups, i, i+1)
	}
}

// SetCohort sets whether the event's person is in a cohort.
func (s *EventView) SetCohort(id int64, r match.Result) {
	if i := slices.Index(s.missing.Cohorts, id); i >= 0 && r != match.Unknown {
		s.missing.Cohorts = slices.Delete(s.missing.Cohorts, i, i+1)
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
func (s *EventView) personProperty(name string) (*match.Value, bool) {
	if !s.person.requested {
		s.person.requested = true
		if s.lookup != nil {
			if raw, ok := s.lookup.Person(s); ok {
				s.SetPerson(raw)
			}
		}
		s.missing.Person = !s.person.known
	}
	if !s.person.known {
		return nil, false
	}
	return s.valueOf(&s.person.jsonObject, name), true
}

// groupProperty returns a property of a group, and whether it is known.
func (s *EventView) groupProperty(index int, name string) (*match.Value, bool) {
	at := s.group(index)
	if !at.requested {
		s.lookUpGroup(at)
	}
	switch {
	case !at.known:
		return nil, false
	case name == "$group_key" && at.key != "":
		s.value = match.Text(at.key)
		return &s.value, true
	}
	return s.valueOf(&at.jsonObject, name), true
}

// group returns the facts of a group, and adds empty ones on first use.
func (s *EventView) group(index int) *groupFacts {
	for i := range s.groups {
		if s.groups[i].index == index {
			return &s.groups[i]
		}
	}
	n := len(s.groups)
	if n < cap(s.groups) {
		s.groups = s.groups[:n+1]
	} else {
		s.groups = append(s.groups, groupFacts{})
	}
	at := &s.groups[n]
	at.index, at.key, at.known, at.requested = index, "", false, false
	return at
}

func (s *EventView) lookUpGroup(at *groupFacts) {
	at.requested = true
	var buf [32]byte
	name := append(buf[:0], "$group_"...)
	v := s.valueOf(&s.props, stringView(strconv.AppendInt(name, int64(at.index), 10)))
	key := v.Identifier()
	if v.Kind() != match.String {
		key = strings.Clone(key) // the text of a number is valid until the next call
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
	s.missing.Groups = append(s.missing.Groups, at.index)
}

func (g *groupFacts) set(to Group) {
	g.reset(to.Properties)
	g.copyRaw()
	g.key, g.known, g.requested = to.Key, true, true
}

// inCohort reports whether the person is in a cohort; it looks each up once.
func (s *EventView) inCohort(id int64) match.Result {
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
		s.missing.Cohorts = append(s.missing.Cohorts, id)
	}
	s.cohorts = append(s.cohorts, membership{id, r})
	return r
}

// groupOf returns the key of the event's group of a type, as $groups names
// it, or "".
func (s *EventView) groupOf(typeName string) string {
	groups := s.props.get("$groups")
	if groups == nil || groups.Type() != fastjson.TypeObject {
		return ""
	}
	v, _ := match.FromJSON(groups.Get(typeName), nil)
	return v.Identifier()
}
