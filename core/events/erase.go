package events

import (
	"context"
	"fmt"
)

// Erased is a change of the history that newer rows do not show: a chunk of erased
// events, or a person who was deleted or merged.
type Erased struct {
	ProjectID int64
	// Before and After are the checkpoints around the change. Their Row is not set.
	Before, After Checkpoint
	// Events are the erased events, in any order.
	Events []HistoryEvent
	// Owned reports that the distinct ids of Events still have persons, so that
	// the persons of a history may change, too.
	Owned bool
	// PersonID is the person who was deleted or merged, 0 for erased events.
	// MergedInto is the person who has the events from now on, 0 for a deleted one.
	PersonID, MergedInto int64
}

// EraseHook corrects what another package has counted, in the transaction of the
// change; an error rolls it back.
type EraseHook func(ctx context.Context, e *Erased) error

// OnErase adds a hook. All hooks must be added before the first erasure.
func (s *Service) OnErase(h EraseHook) { s.shared.hooks = append(s.shared.hooks, h) }

// Erase permanently deletes the events of distinct ids and returns their number.
// It deletes a limited number of events at a time, each in a transaction of its
// own with the corrections of the hooks, unless ctx has one.
func (s *Service) Erase(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
	n, err := s.backend.Erase(ctx, projectID, distinctIDs)
	if err != nil {
		return n, fmt.Errorf("erase events: %w", err)
	}
	return n, nil
}

// PersonDeleted records that the events of a person have no person from now on. It is a
// hook of deletions and joins their transaction.
func (s *Service) PersonDeleted(ctx context.Context, projectID, personID int64) error {
	e := &Erased{ProjectID: projectID, PersonID: personID}
	if err := s.shared.recordErased(ctx, e, 0, 1); err != nil {
		return fmt.Errorf("record the deletion of a person: %w", err)
	}
	return s.shared.callHooks(ctx, e)
}

// PersonsMerged records that the events of the persons from belong to the persons into from
// now on. It is a hook of merges and joins their transaction.
func (s *Service) PersonsMerged(ctx context.Context, projectID int64, from, into []int64) error {
	all := int64(len(from))
	e := Erased{ProjectID: projectID}
	if err := s.shared.recordErased(ctx, &e, 0, all); err != nil {
		return fmt.Errorf("record merges of persons: %w", err)
	}
	before := e.Before.Persons
	for i := range from {
		one := e
		one.PersonID, one.MergedInto = from[i], into[i]
		one.Before.Persons, one.After.Persons = before+int64(i), before+int64(i)+1
		if err := s.shared.callHooks(ctx, &one); err != nil {
			return err
		}
	}
	return nil
}
