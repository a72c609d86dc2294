package history

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Revisions reads the revision of the cohorts of projects.
type Revisions interface {
	// Of returns a number that changes with every write to a cohort of the project.
	Of(ctx context.Context, projectID int64) (int64, error)
}

// FollowCohorts sets the revisions of cohorts: after a change of a cohort, the
// actions that read cohorts are counted again. It must be called before Start.
func (h *Service) FollowCohorts(r Revisions) { h.freshness.revisions = r }

// Results that depend on more than events are repeated at each request, as long as
// that takes at most one part in costShare of the time; see lifetime.
const (
	costShare   = 20
	minLifetime = 500 * time.Millisecond
)

// lifetime is how long a result stays valid that depends on persons, groups,
// cohorts, plugins or the date: costShare times of what it took, and at most
// Config.Refresh.
func lifetime(took, refresh time.Duration) time.Duration {
	return min(max(costShare*took, minLifetime), refresh)
}

// freshness remembers what the last complete counts of this process took, and the
// cohorts they have read. It is safe for concurrent use.
type freshness struct {
	revisions Revisions // nil: cohorts never change

	mu   sync.Mutex
	last map[int64]lastRun // by action
}

type lastRun struct {
	took     time.Duration
	revision int64 // of the cohorts, before the count
}

// revision returns the revision of the cohorts for a plan that reads them, else 0.
func (f *freshness) revision(ctx context.Context, projectID int64, p *plan) (int64, error) {
	if f.revisions == nil || !p.readsCohorts {
		return 0, nil
	}
	n, err := f.revisions.Of(ctx, projectID)
	if err != nil {
		return 0, fmt.Errorf("read the revision of the cohorts: %w", err)
	}
	return n, nil
}

// counted records a complete count.
func (f *freshness) counted(actionID, revision int64, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[actionID] = lastRun{took, revision}
}

// expired reports whether a count of a time-dependent plan is to be repeated. A
// count of another process is.
func (f *freshness) expired(actionID, revision int64, age, refresh time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.last[actionID]
	return !known || last.revision != revision || age > lifetime(last.took, refresh)
}
