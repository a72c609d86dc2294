package match

import (
	"context"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/core/match"
)

// People answers what is stored about persons and groups.
type People interface {
	// Properties returns the properties of the person behind a distinct id, a
	// JSON object that is not changed, and whether there is such a person.
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
	// GroupProperties does the same for a group.
	GroupProperties(ctx context.Context, projectID int64, groupType, groupKey string) ([]byte, bool, error)
	// GroupTypes returns the indexes of the project's group types by name.
	GroupTypes(ctx context.Context, projectID int64) (map[string]int, error)
}

// Members answers who is in which cohort.
type Members interface {
	// InCohort tells whether the person behind a distinct id is in a cohort;
	// Unknown when that cannot be worked out.
	InCohort(ctx context.Context, projectID, cohortID int64, distinctID string) (match.Result, error)
}

// Plugins answers for plugin operators in two rounds: what it does not know
// in the first it notes and asks, and answers in the second.
type Plugins interface {
	match.External
	// Ask asks the plugins everything that was noted, within the deadline of
	// ctx, and reports whether there was anything.
	Ask(ctx context.Context) bool
}

// errNobody is why a question has no answer when there is nobody to ask.
var errNobody = errors.New("there is nobody to ask")

// Facts is the Lookup for a batch of events of one project: it asks about
// each person, group and membership at most once, and only when a matcher
// does. It belongs to one goroutine and to one batch.
type Facts struct {
	ctx       context.Context
	projectID int64
	people    People
	members   Members

	persons     map[string]known[[]byte]
	groups      map[groupRef]known[[]byte]
	memberships map[memberRef]match.Result
	types       map[int]string // nil until asked
	typesErr    error
	err         error
}

type known[T any] struct {
	value T
	ok    bool
}

type groupRef struct {
	index int
	key   string
}

type memberRef struct {
	cohort     int64
	distinctID string
}

var _ Lookup = (*Facts)(nil)

// NewFacts returns the Facts of a batch. What people or members, which may be
// nil, cannot tell is not known; ctx bounds all questions.
func NewFacts(ctx context.Context, projectID int64, people People, members Members) *Facts {
	return &Facts{
		ctx: ctx, projectID: projectID, people: people, members: members,
		persons: map[string]known[[]byte]{}, groups: map[groupRef]known[[]byte]{}, memberships: map[memberRef]match.Result{},
	}
}

// Err returns the first failure of a question, or nil. Whatever hung on it
// was Unknown.
func (f *Facts) Err() error { return f.err }

func (f *Facts) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Person implements Lookup.
func (f *Facts) Person(s *Seen) ([]byte, bool) {
	id := s.Event().DistinctID
	had, ok := f.persons[id]
	if !ok {
		had.value, had.ok = f.askPerson(id)
		f.persons[id] = had
	}
	return had.value, had.ok
}

func (f *Facts) askPerson(distinctID string) ([]byte, bool) {
	if f.people == nil {
		f.fail(fmt.Errorf("read a person: %w", errNobody))
		return nil, false
	}
	raw, found, err := f.people.Properties(f.ctx, f.projectID, distinctID)
	if err != nil {
		f.fail(fmt.Errorf("read a person: %w", err))
		return nil, false
	}
	if !found {
		raw = nil
	}
	return raw, true
}

// Group implements Lookup.
func (f *Facts) Group(s *Seen, index int, key string) (Group, bool) {
	name, ok := f.typeName(index)
	if !ok {
		return Group{}, f.typesErr == nil
	}
	if key == "" {
		if key = s.groupOf(name); key == "" {
			return Group{}, true
		}
	}
	ref := groupRef{index, key}
	had, ok := f.groups[ref]
	if !ok {
		had.value, had.ok = f.askGroup(name, key)
		f.groups[ref] = had
	}
	return Group{Key: key, Properties: had.value}, had.ok
}

func (f *Facts) askGroup(name, key string) ([]byte, bool) {
	raw, found, err := f.people.GroupProperties(f.ctx, f.projectID, name, key)
	if err != nil {
		f.fail(fmt.Errorf("read a group: %w", err))
		return nil, false
	}
	if !found {
		raw = nil
	}
	return raw, true
}

// typeName returns the name of a group type, reading all of them once.
func (f *Facts) typeName(index int) (string, bool) {
	if f.types == nil && f.typesErr == nil {
		f.readTypes()
	}
	name, ok := f.types[index]
	return name, ok
}

func (f *Facts) readTypes() {
	if f.people == nil {
		f.typesErr = fmt.Errorf("read the group types: %w", errNobody)
		f.fail(f.typesErr)
		return
	}
	byName, err := f.people.GroupTypes(f.ctx, f.projectID)
	if err != nil {
		f.typesErr = fmt.Errorf("read the group types: %w", err)
		f.fail(f.typesErr)
		return
	}
	f.types = make(map[int]string, len(byName))
	for name, index := range byName {
		f.types[index] = name
	}
}

// Cohort implements Lookup.
func (f *Facts) Cohort(s *Seen, id int64) match.Result {
	ref := memberRef{id, s.Event().DistinctID}
	r, ok := f.memberships[ref]
	if !ok {
		r = f.askMember(ref)
		f.memberships[ref] = r
	}
	return r
}

func (f *Facts) askMember(ref memberRef) match.Result {
	if f.members == nil {
		f.fail(fmt.Errorf("read a cohort: %w", errNobody))
		return match.Unknown
	}
	r, err := f.members.InCohort(f.ctx, f.projectID, ref.cohort, ref.distinctID)
	if err != nil {
		f.fail(fmt.Errorf("read cohort %d: %w", ref.cohort, err))
		return match.Unknown
	}
	return r
}
