package eval

import (
	"github.com/guidonhq/guidon/core/flags/eval/schema"
	"github.com/guidonhq/guidon/core/match"
)

// lookupState is the state of reading one kind of stored data.
type lookupState uint8

const (
	unread lookupState = iota
	read
	unreadable
)

func stateOf(ok bool) lookupState {
	if ok {
		return read
	}
	return unreadable
}

// storedData is the stored data about the person apart from properties.
type storedData struct {
	anonymousID    string
	cohorts        []membership // results by place in the set
	listsState     lookupState  // of static cohorts
	listsWanted    bool
	lists          []int64
	hashKeysState  lookupState // of experience continuity
	hashKeysWanted bool
	hashKeys       map[string]string
}

// membership is the result of one cohort.
type membership struct {
	epoch  uint32
	round  uint8
	result match.Result
	cause  Cause // of an unknown result
}

func (s *storedData) reset(cohorts int) {
	s.anonymousID, s.cohorts, s.lists = "", resize(s.cohorts, cohorts), s.lists[:0]
	s.listsState, s.listsWanted, s.hashKeysState, s.hashKeysWanted, s.hashKeys = unread, false, unread, false, nil
}

// DistinctID returns the id of the person. Copy it to keep it.
func (e *Evaluation) DistinctID() string { return e.person.id }

// NeedsPerson reports whether Run needs the stored properties of the person.
func (e *Evaluation) NeedsPerson() bool { return e.person.wanted }

// FillPerson adds stored properties of the person, a JSON object or nothing.
// The evaluation refers to its own copy.
func (e *Evaluation) FillPerson(raw []byte) error {
	return e.fillStored(&e.person, &e.set.people, raw)
}

// EndPersonLookup ends reading the properties of the person; with ok false they
// are unreadable, and flags that need them fail.
func (e *Evaluation) EndPersonLookup(ok bool) { e.person.stored, e.person.wanted = stateOf(ok), false }

// Groups returns the number of group types.
func (e *Evaluation) Groups() int { return len(e.groups) }

// Group returns the name of the i-th group type and the key of its group. Copy
// the key to keep it.
func (e *Evaluation) Group(i int) (typeName, key string) {
	return e.set.groups[i].name, e.groups[i].id
}

// NeedsGroup reports whether Run needs the stored properties of the group of
// the i-th type.
func (e *Evaluation) NeedsGroup(i int) bool { return e.groups[i].wanted }

// FillGroup is FillPerson for the group of the i-th type.
func (e *Evaluation) FillGroup(i int, raw []byte) error {
	return e.fillStored(&e.groups[i], &e.set.groups[i].schema, raw)
}

// EndGroupLookup is EndPersonLookup for the group of the i-th type.
func (e *Evaluation) EndGroupLookup(i int, ok bool) {
	e.groups[i].stored, e.groups[i].wanted = stateOf(ok), false
}

func (e *Evaluation) fillStored(s *subject, in *schema.Schema, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	v, err := s.parser.ParseBytes(raw)
	if err != nil {
		return err
	}
	o, err := v.Object()
	if err == nil {
		e.fillProperties(s, in, fromStore, o)
	}
	return err
}

// NeedsStaticCohorts reports whether Run needs the static cohorts that list the
// person.
func (e *Evaluation) NeedsStaticCohorts() bool { return e.stored.listsWanted }

// EndStaticCohortLookup sets the static cohorts that list the person; with ok
// false they are unreadable.
func (e *Evaluation) EndStaticCohortLookup(ids []int64, ok bool) {
	e.stored.listsState, e.stored.listsWanted = stateOf(ok), false
	e.stored.lists = append(e.stored.lists[:0], ids...)
}

// NeedsHashKeys reports whether Run needs the identifiers that experience
// continuity keeps for the person.
func (e *Evaluation) NeedsHashKeys() bool { return e.stored.hashKeysWanted }

// EndHashKeyLookup sets the kept identifiers by flag key; with ok false they are
// unreadable.
func (e *Evaluation) EndHashKeyLookup(keys map[string]string, ok bool) {
	e.stored.hashKeysState, e.stored.hashKeysWanted, e.stored.hashKeys = stateOf(ok), false, keys
}

// AnonymousIDToKeep returns the id from before login if experience continuity
// keeps it for the person, else "". A trace keeps nothing. Copy it to keep it.
func (e *Evaluation) AnonymousIDToKeep() string {
	if e.trace != nil || len(e.set.continuous) == 0 {
		return ""
	}
	return e.stored.anonymousID
}

// ContinuousKeys returns the keys of the active flags with experience
// continuity. The caller must not change them.
func (e *Evaluation) ContinuousKeys() []string { return e.set.continuous }

// setKnown ends all lookups: properties that are not known do not exist.
func (e *Evaluation) setKnown(known *KnownProperties) {
	if known == nil {
		known = &KnownProperties{}
	}
	_ = e.FillPerson(known.PersonProperties) // text that is not an object has no properties
	e.EndPersonLookup(true)
	for i := range e.groups {
		_ = e.FillGroup(i, known.GroupProperties[e.set.groups[i].name])
		e.EndGroupLookup(i, true)
	}
	e.EndStaticCohortLookup(known.StaticCohorts, true)
	e.EndHashKeyLookup(known.HashKeys, true)
	if known.Plugins != nil {
		e.env.External = known.Plugins
	}
}
