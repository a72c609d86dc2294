package events

import (
	"context"
	"fmt"
	"time"
)

// Expiry selects the events of a project with a timestamp before a time, with a name
// only those of that name.
type Expiry struct {
	ProjectID int64
	Event     string // "": all names
	Before    time.Time
}

// Expired is the end of a deletion of old events.
type Expired struct {
	ProjectID int64
	// From and To bound the timestamps of the deleted events to [From, To).
	From, To time.Time
	// Before and After are the checkpoints around the change. Their Row is not set.
	Before, After Checkpoint
}

// ExpireHook corrects what another package has counted from events of that time, in a
// transaction; an error rolls it back.
type ExpireHook func(ctx context.Context, e *Expired) error

// OnExpire adds a hook. All hooks must be added before the first deletion.
func (s *Service) OnExpire(h ExpireHook) { s.shared.expireHooks = append(s.shared.expireHooks, h) }

// Oldest returns the smallest timestamp of the events of a project that is not before
// since, with a name only of those of that name; false without such events. An index
// answers it.
func (s *Service) Oldest(ctx context.Context, projectID int64, event string, since time.Time) (time.Time, bool, error) {
	at, ok, err := s.backend.Oldest(ctx, projectID, event, since)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("find the oldest event: %w", err)
	}
	return at, ok, nil
}

// CountExpired returns how many events x selects.
func (s *Service) CountExpired(ctx context.Context, x Expiry) (int64, error) {
	n, err := s.backend.CountExpired(ctx, x)
	if err != nil {
		return 0, fmt.Errorf("count old events: %w", err)
	}
	return n, nil
}

// DeleteExpired deletes at most limit of the events that x selects, the oldest first,
// in one transaction, and returns their number. What other packages have counted is
// corrected by FinishExpiry only, which must follow the last deletion.
func (s *Service) DeleteExpired(ctx context.Context, x Expiry, limit int) (int, error) {
	n, err := s.backend.DeleteExpired(ctx, x, limit)
	if err != nil {
		return 0, fmt.Errorf("delete old events: %w", err)
	}
	return n, nil
}

// FinishExpiry corrects what was counted from events of a project in [from, to). It
// joins the transaction in ctx, or makes one.
func (s *Service) FinishExpiry(ctx context.Context, projectID int64, from, to time.Time) error {
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		var around Erased
		around.ProjectID = projectID
		if err := s.shared.recordErased(ctx, &around, 1, 0); err != nil {
			return err
		}
		e := &Expired{ProjectID: projectID, From: from, To: to, Before: around.Before, After: around.After}
		for _, hook := range s.shared.expireHooks {
			if err := hook(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("correct counts of old events: %w", err)
	}
	return nil
}

// Projects returns the projects that have events, ascending, also closed ones.
func (s *Service) Projects(ctx context.Context) ([]int64, error) {
	ids, err := s.backend.Projects(ctx)
	if err != nil {
		return nil, fmt.Errorf("list projects with events: %w", err)
	}
	return ids, nil
}

// Names returns the names of the stored events of a project, ascending, with one look
// into an index per name.
func (s *Service) Names(ctx context.Context, projectID int64) ([]string, error) {
	names, err := s.backend.Names(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("list the names of events: %w", err)
	}
	return names, nil
}
