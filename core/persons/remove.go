package persons

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/guidonhq/guidon/core/fault"
)

// Removal names the data of a person that is to be deleted.
type Removal struct {
	ProjectID   int64
	PersonID    int64 // 0 if only the distinct ids are known
	DistinctIDs []string
	Events      bool // also the events of the distinct ids
}

// DeleteHook deletes the data of another package about a person, inside the
// transaction that deletes the person; an error rolls it back.
type DeleteHook func(ctx context.Context, projectID, personID int64) error

// OnDelete adds a hook. All hooks must be added before the first deletion.
func (s *Service) OnDelete(h DeleteHook) { s.deleteHooks = append(s.deleteHooks, h) }

// EraseHook permanently deletes the data of another package about distinct ids
// and returns the number of deleted items. It may be slow, and may delete a part
// before it fails: it is called again.
type EraseHook func(ctx context.Context, projectID int64, distinctIDs []string) (int64, error)

// OnDeleteIDs adds a hook that runs for every deleted person. All hooks must be
// added before the first deletion.
func (s *Service) OnDeleteIDs(h EraseHook) { s.idHooks = append(s.idHooks, h) }

// OnErase adds a hook that runs for persons that are deleted with their events.
// All hooks must be added before the first deletion.
func (s *Service) OnErase(h EraseHook) { s.eraseHooks = append(s.eraseHooks, h) }

// Recorder remembers deletions, so that neither a crash nor a restored database
// brings a person back. It deletes by Service.Remove.
type Recorder interface {
	// Erase records r and returns when it is carried out. After an error r may be
	// recorded: then it is carried out later.
	Erase(ctx context.Context, r Removal) error
}

// RecordWith makes Delete go through r. It must be called before the first
// deletion.
func (s *Service) RecordWith(r Recorder) { s.recorder = r }

// Delete deletes a person and, with erase, its events and dead letters. A later
// event creates a new person. It fails with NotFound.
func (s *Service) Delete(ctx context.Context, projectID int64, ref string, erase bool) error {
	p, err := s.Get(ctx, projectID, ref)
	if err != nil {
		return err
	}
	r := Removal{ProjectID: projectID, PersonID: p.ID, DistinctIDs: p.DistinctIDs, Events: erase}
	if err := s.checkRemoval(&r); err != nil {
		return err
	}
	if s.recorder != nil {
		return s.recorder.Erase(ctx, r)
	}
	return s.Remove(ctx, &r)
}

func (s *Service) checkRemoval(r *Removal) error {
	if r.Events && len(s.eraseHooks) == 0 {
		return fault.New(fault.Unavailable, "erasure_unavailable", "Events cannot be erased here.")
	}
	return nil
}

// Remove deletes the persons of r and what all packages hold of them. A person
// that owns further distinct ids, and is not the one that r names, only loses
// those of r. Repeating a Remove is safe: data that is gone is no error.
func (s *Service) Remove(ctx context.Context, r *Removal) error {
	if err := s.checkRemoval(r); err != nil {
		return err
	}
	if err := s.db.Tx(ctx, func(ctx context.Context) error { return s.removePersons(ctx, r) }); err != nil {
		return err
	}
	hooks := s.idHooks
	if r.Events {
		hooks = slices.Concat(s.idHooks, s.eraseHooks)
	}
	for _, hook := range hooks {
		if _, err := hook(ctx, r.ProjectID, r.DistinctIDs); err != nil {
			return fmt.Errorf("erase the data of %d distinct ids: %w", len(r.DistinctIDs), err)
		}
	}
	return nil
}

func (s *Service) removePersons(ctx context.Context, r *Removal) error {
	owners, err := s.store.owners(ctx, r)
	if err != nil {
		return fmt.Errorf("find the persons of %d distinct ids: %w", len(r.DistinctIDs), err)
	}
	// All are locked before a hook writes: a batch of events locks its persons first, too.
	ids := make(map[int64][]string, len(owners))
	for _, id := range owners {
		if ids[id], err = s.store.lockPerson(ctx, id); fault.Is(err, fault.NotFound) {
			delete(ids, id)
		} else if err != nil {
			return fmt.Errorf("lock person %d: %w", id, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if err := s.removePerson(ctx, r, id, ids[id]); err != nil {
			return fmt.Errorf("delete person %d: %w", id, err)
		}
	}
	if err := s.store.deleteLoneIDs(ctx, r.ProjectID, r.DistinctIDs); err != nil {
		return fmt.Errorf("delete distinct ids without a person: %w", err)
	}
	return nil
}

// removePerson deletes a locked person with its distinct ids, or takes those of r from
// it if it is another one than r names.
func (s *Service) removePerson(ctx context.Context, r *Removal, id int64, ids []string) error {
	s.dropAfterCommit(ctx, r.ProjectID, id, ids)
	if others := func(id string) bool { return !slices.Contains(r.DistinctIDs, id) }; id != r.PersonID && slices.ContainsFunc(ids, others) {
		return s.store.unlink(ctx, r.ProjectID, id, r.DistinctIDs)
	}
	for _, hook := range s.deleteHooks {
		if err := hook(ctx, r.ProjectID, id); err != nil {
			return err
		}
	}
	return s.store.deletePerson(ctx, id)
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
