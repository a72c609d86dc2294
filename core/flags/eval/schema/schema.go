// Package schema assigns slots to the properties that filters read, so that an
// evaluation looks up each name of a request once and filters use slots only.
//
// A Schema belongs to one set of compiled flags and does not change while the set is
// in use. The next set begins with a Clone, in which slots keep their numbers: flags
// that did not change stay valid. Uses of a slot are counted; a slot without uses
// stays, because its number must not get another meaning.
package schema

import (
	"maps"
	"slices"
	"strings"
)

// Schema is the properties of one kind of subject. The zero value has none.
type Schema struct {
	slots      map[string]int32
	nameFilter [4]uint64 // a Bloom filter of the names, by hash8
	names      []string  // by slot
	uses       []int32   // by slot
	unused     int       // slots without uses
	shared     bool      // slots belongs to another Schema as well
}

// Clone returns a Schema that can be changed without an effect on s.
func (s *Schema) Clone() Schema {
	next := *s
	next.names, next.uses, next.shared = slices.Clip(s.names), slices.Clone(s.uses), true
	return next
}

// hash8 returns a cheap 8-bit hash of a name.
func hash8(name string) uint8 {
	if name == "" {
		return 0
	}
	n := len(name)
	return uint8(n)*31 + name[0] + name[n/2]*7 + name[n-1]*13
}

// Find returns the slot of a property. Most properties of a request have none; the
// name filter rejects nearly all of them without a map lookup.
func (s *Schema) Find(name string) (int32, bool) {
	if l := hash8(name); s.nameFilter[l>>6]&(1<<(l&63)) == 0 {
		return 0, false
	}
	at, ok := s.slots[name]
	return at, ok
}

// Len returns the number of slots.
func (s *Schema) Len() int { return len(s.names) }

// Unused returns the number of slots without uses.
func (s *Schema) Unused() int { return s.unused }

// Use counts one more use of a property and returns its slot.
func (s *Schema) Use(name string) int32 {
	at, ok := s.slots[name]
	if !ok {
		at = s.add(name)
	} else if s.uses[at] == 0 {
		s.unused--
	}
	s.uses[at]++
	return at
}

func (s *Schema) add(name string) int32 {
	switch {
	case s.slots == nil:
		s.slots = map[string]int32{}
	case s.shared:
		s.slots = maps.Clone(s.slots)
	}
	s.shared = false
	at := int32(len(s.names))
	s.slots[name] = at
	s.names, s.uses = append(s.names, name), append(s.uses, 0)
	l := hash8(name)
	s.nameFilter[l>>6] |= 1 << (l & 63)
	return at
}

// Release counts one use less of a slot.
func (s *Schema) Release(slot int32) {
	if s.uses[slot]--; s.uses[slot] == 0 {
		s.unused++
	}
}

// Uses reports whether a property is in use.
func (s *Schema) Uses(name string) bool {
	at, ok := s.slots[name]
	return ok && s.uses[at] > 0
}

// UsesPrefix reports whether a property whose name begins with prefix is in use.
func (s *Schema) UsesPrefix(prefix string) bool {
	for at, name := range s.names {
		if strings.HasPrefix(name, prefix) && s.uses[at] > 0 {
			return true
		}
	}
	return false
}
