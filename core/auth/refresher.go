package auth

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
)

const (
	// queryTimeout bounds one query for the snapshot or a personal key.
	queryTimeout = 5 * time.Second
	// failurePause is the time after a failure without another query.
	failurePause = 250 * time.Millisecond
)

// refresher runs one refresh of the snapshot at a time; waiting callers share
// its result. The fields after lock are guarded by it.
type refresher struct {
	lock  chan struct{}
	began time.Time // of the last refresh
	ended time.Time
	err   error // of the last refresh
}

func newRefresher() refresher { return refresher{lock: make(chan struct{}, 1)} }

// refreshedSince returns a snapshot of the database at since or later. One query
// runs at a time, however many callers there are; all callers that asked before
// it began share its result. It fails with Unavailable if the database cannot be
// asked.
func (a *authenticator) refreshedSince(ctx context.Context, since time.Time) (*snapshot, error) {
	select {
	case a.refresh.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	changed := a.refreshSnapshot(since)
	m, err := a.snapshot.Load(), a.refresh.err
	<-a.refresh.lock
	if changed {
		a.notifyChange()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return m, nil
}

func unavailable(cause error) error {
	return fault.New(fault.Unavailable, "fetch_team_fail", "Unable to fetch team from database.").
		After(time.Second).Because(cause)
}

// refreshSnapshot reads the snapshot unless that was done since, or failed just
// now. It reports whether the snapshot changed.
func (a *authenticator) refreshSnapshot(since time.Time) bool {
	r := &a.refresh
	if r.began.After(since) || (r.err != nil && time.Since(r.ended) < failurePause) {
		return false
	}
	// Not the context of the caller: others share the result.
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	failed := r.err != nil
	r.began = time.Now()
	fresh, err := a.store.snapshot(ctx, a.snapshot.Load(), a.cfg.ReloadInterval)
	r.ended, r.err = time.Now(), err
	if err != nil {
		a.metrics.failures.Inc()
		if !failed {
			a.log.Warn("key cache refresh failed, using cached keys", zap.Error(err))
		}
		return false
	}
	if failed {
		a.log.Info("key cache refresh recovered")
	}
	return a.replaceSnapshot(fresh)
}

// replaceSnapshot reports whether the new snapshot differs from the old one.
func (a *authenticator) replaceSnapshot(fresh *snapshot) bool {
	old := a.snapshot.Load()
	if fresh == old {
		return false
	}
	a.snapshot.Store(fresh)
	a.metrics.keys.Set(float64(len(fresh.byKey)))
	return old != nil && !old.equal(fresh)
}
