package persons

import (
	"context"
	"fmt"
	"slices"

	"github.com/guidonhq/guidon/core/fault"
)

// DeleteHook deletes the data of another package about a person, inside the
// transaction that deletes the person; an error rolls it back.
type DeleteHook func(ctx context.Context, projectID, personID int64) error

// OnDelete adds a hook. All hooks must be added before the first deletion.
func (s *Service) OnDelete(h DeleteHook) { s.deleteHooks = append(s.deleteHooks, h) }

// EraseHook permanently deletes the data of another package about distinct ids
// and returns the number of deleted items. It may be slow, and may delete a part
// before it fails: it is called again.
type EraseHook func(ctx context.Context, projectID int64, distinctIDs []string) (int64, error)

// OnErase adds a hook. All hooks must be added before the first deletion.
func (s *Service) OnErase(h EraseHook) { s.eraseHooks = append(s.eraseHooks, h) }

// Delete deletes a person and, with erase, first all other data of its distinct
// ids. A later event creates a new person. It fails with NotFound.
func (s *Service) Delete(ctx context.Context, projectID int64, ref string, erase bool) error {
	p, err := s.Get(ctx, projectID, ref)
	if err != nil {
		return err
	}
	if erase {
		if err := s.erase(ctx, projectID, p.DistinctIDs); err != nil {
			return err
		}
	}
	return s.db.Tx(ctx, func(ctx context.Context) error {
		ids, err := s.store.lockPerson(ctx, p.ID)
		if err != nil {
			return fmt.Errorf("delete person %d: %w", p.ID, err)
		}
		for _, hook := range s.deleteHooks {
			if err := hook(ctx, projectID, p.ID); err != nil {
				return fmt.Errorf("forget person %d: %w", p.ID, err)
			}
		}
		if err := s.store.deletePerson(ctx, p.ID); err != nil {
			return fmt.Errorf("delete person %d: %w", p.ID, err)
		}
		s.dropAfterCommit(ctx, projectID, p.ID, ids)
		return nil
	})
}

func (s *Service) erase(ctx context.Context, projectID int64, distinctIDs []string) error {
	if len(s.eraseHooks) == 0 {
		return fault.New(fault.Unavailable, "erasure_unavailable", "Events cannot be erased here.")
	}
	for _, hook := range s.eraseHooks {
		if _, err := hook(ctx, projectID, distinctIDs); err != nil {
			return fmt.Errorf("erase what is kept of %d distinct ids: %w", len(distinctIDs), err)
		}
	}
	return nil
}

// dropAfterCommit drops a person from the cache after the commit.
func (s *Service) dropAfterCommit(ctx context.Context, projectID, personID int64, distinctIDs []string) {
	keys := make([]cacheKey, len(distinctIDs))
	for i, id := range distinctIDs {
		keys[i] = cacheKey{projectID, noGroup, id}
	}
	s.db.AfterCommit(ctx, func() { s.cache.drop(projectID, []int64{personID}, keys) })
}

// Split gives each distinct id of a person a person of its own. The person keeps
// the distinct id main and its properties; without main it keeps its first
// distinct id and no properties, because their origin is unknown. The new persons
// have no properties. It fails with NotFound, or with Invalid if main is not an id
// of the person.
func (s *Service) Split(ctx context.Context, projectID int64, ref, main string) error {
	p, err := s.Get(ctx, projectID, ref)
	if err != nil {
		return err
	}
	return s.db.Tx(ctx, func(ctx context.Context) error {
		ids, err := s.store.lockPerson(ctx, p.ID)
		if err != nil {
			return fmt.Errorf("split person %d: %w", p.ID, err)
		}
		switch {
		case main != "" && !slices.Contains(ids, main):
			return fault.Field("main_distinct_id", "invalid_input", "The person has no such distinct id.")
		case len(ids) == 0:
			return nil
		}
		if err := s.store.splitPerson(ctx, projectID, &p, ids, main); err != nil {
			return fmt.Errorf("split person %d: %w", p.ID, err)
		}
		s.dropAfterCommit(ctx, projectID, p.ID, ids)
		return nil
	})
}
