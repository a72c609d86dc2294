package match

import (
	"context"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/core/match"
)

// Persons reads stored persons and groups.
type Persons interface {
	// Properties returns the properties of the person with a distinct id, a
	// JSON object that is not changed, and whether the person exists.
	Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error)
	// GroupProperties returns the properties of a group in the same way.
	GroupProperties(ctx context.Context, projectID int64, groupType, groupKey string) ([]byte, bool, error)
	// GroupTypes returns the indexes of the project's group types by name.
	GroupTypes(ctx context.Context, projectID int64) (map[string]int, error)
}

// Members reads cohort memberships.
type Members interface {
	// InCohort reports whether the person with a distinct id is in a cohort;
	// Unknown if that cannot be computed.
	InCohort(ctx context.Context, projectID, cohortID int64, distinctID string) (match.Result, error)
}

// Plugins evaluates plugin operators in two rounds: the first round collects
// the values it has no answer for, Ask sends them to the plugins, and the
// second round uses the answers.
type Plugins interface {
	match.External
	// Ask sends all collected values to the plugins, within the deadline of
	// ctx, and reports whether there were any.
	Ask(ctx context.Context) bool
}

// errNoSource is the error of facts without a source.
var errNoSource = errors.New("no source of facts")

// Facts is the Lookup of a batch of events of one project. It reads each
// person, group and membership at most once, and only if a matcher needs it.
// It is not safe for concurrent use and serves one batch.
type Facts struct {
	ctx          context.Context
	projectID    int64
	personReader Persons
	members      Members

	persons     map[string]fact[[]byte]
	groups      map[groupKey]fact[[]byte]
	memberships map[membershipKey]match.Result
	types       map[int]string // nil until read
	typesErr    error
	err         error
}

type fact[T any] struct {
	value T
	ok    bool
}

type groupKey struct {
	index int
	key   string
}

type membershipKey struct {
	cohort     int64
	distinctID string
}

var _ Lookup = (*Facts)(nil)

// NewFacts returns the Facts of a batch. persons and members may be nil: then
// their facts are not known. ctx bounds all reads.
func NewFacts(ctx context.Context, projectID int64, people Persons, members Members) *Facts {
	return &Facts{
		ctx: ctx, projectID: projectID, personReader: people, members: members,
		persons: map[string]fact[[]byte]{}, groups: map[groupKey]fact[[]byte]{}, memberships: map[membershipKey]match.Result{},
	}
}

// Err returns the first error of a read, or nil. Results that depended on the
// failed read are Unknown.
func (f *Facts) Err() error { return f.err }

func (f *Facts) setErr(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Person implements Lookup.
func (f *Facts) Person(s *EventView) ([]byte, bool) {
	id := s.Event().DistinctID
	had, ok := f.persons[id]
	if !ok {
		had.value, had.ok = f.readPerson(id)
		f.persons[id] = had
	}
	return had.value, had.ok
}

func (f *Facts) readPerson(distinctID string) ([]byte, bool) {
	if f.personReader == nil {
		f.setErr(fmt.Errorf("read a person: %w", errNoSource))
		return nil, false
	}
	raw, found, err := f.personReader.Properties(f.ctx, f.projectID, distinctID)
	if err != nil {
		f.setErr(fmt.Errorf("read a person: %w", err))
		return nil, false
	}
	if !found {
		raw = nil
	}
	return raw, true
}

// Group implements Lookup.
func (f *Facts) Group(s *EventView, index int, key string) (Group, bool) {
	name, ok := f.groupTypeName(index)
	if !ok {
		return Group{}, f.typesErr == nil
	}
	if key == "" {
		if key = s.groupOf(name); key == "" {
			return Group{}, true
		}
	}
	ref := groupKey{index, key}
	had, ok := f.groups[ref]
	if !ok {
		had.value, had.ok = f.readGroup(name, key)
		f.groups[ref] = had
	}
	return Group{Key: key, Properties: had.value}, had.ok
}

func (f *Facts) readGroup(name, key string) ([]byte, bool) {
	raw, found, err := f.personReader.GroupProperties(f.ctx, f.projectID, name, key)
	if err != nil {
		f.setErr(fmt.Errorf("read a group: %w", err))
		return nil, false
	}
	if !found {
		raw = nil
	}
	return raw, true
}

// groupTypeName returns the name of a group type. It reads all types once.
func (f *Facts) groupTypeName(index int) (string, bool) {
	if f.types == nil && f.typesErr == nil {
		f.readGroupTypes()
	}
	name, ok := f.types[index]
	return name, ok
}

func (f *Facts) readGroupTypes() {
	if f.personReader == nil {
		f.typesErr = fmt.Errorf("read the group types: %w", errNoSource)
		f.setErr(f.typesErr)
		return
	}
	byName, err := f.personReader.GroupTypes(f.ctx, f.projectID)
	if err != nil {
		f.typesErr = fmt.Errorf("read the group types: %w", err)
		f.setErr(f.typesErr)
		return
	}
	f.types = make(map[int]string, len(byName))
	for name, index := range byName {
		f.types[index] = name
	}
}

// Cohort implements Lookup.
func (f *Facts) Cohort(s *EventView, id int64) match.Result {
	ref := membershipKey{id, s.Event().DistinctID}
	r, ok := f.memberships[ref]
	if !ok {
		r = f.readMembership(ref)
		f.memberships[ref] = r
	}
	return r
}

func (f *Facts) readMembership(ref membershipKey) match.Result {
	if f.members == nil {
		f.setErr(fmt.Errorf("read a cohort: %w", errNoSource))
		return match.Unknown
	}
	r, err := f.members.InCohort(f.ctx, f.projectID, ref.cohort, ref.distinctID)
	if err != nil {
		f.setErr(fmt.Errorf("read cohort %d: %w", ref.cohort, err))
		return match.Unknown
	}
	return r
}
