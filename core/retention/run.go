package retention

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/retry"
)

// chunk is how many events one transaction deletes: a few hundredths of a second.
const chunk = 500

// Between two chunks a run sleeps for pauseShare times of what the last one took.
const (
	pauseShare = 2
	minPause   = 2 * time.Millisecond
	maxPause   = 2 * time.Second
)

// maxLog is the size of the write-ahead log of SQLite from which a run waits until the
// log could be emptied.
const maxLog = 64 << 20

// logWait is the pause between two attempts to empty it.
const logWait = time.Second

// Run deletes the old events of all projects and corrects what was counted. When ctx
// ends it stops after the transaction at hand; the next run goes on.
func (s *Service) Run(ctx context.Context) error {
	s.running.Lock()
	defer s.running.Unlock()
	if err := errors.Join(s.database.Sync(ctx), s.refresh(ctx)); err != nil {
		return err
	}
	projects, err := s.events.Projects(ctx)
	if err != nil {
		return err
	}
	open, err := s.store.unfinished(ctx)
	if err != nil {
		return err
	}
	isOpen := map[int64]bool{}
	for _, id := range open {
		isOpen[id] = true
	}
	for _, id := range projects {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.runProject(ctx, id, isOpen[id]); err != nil {
			return err
		}
		delete(isOpen, id)
	}
	for id := range isOpen { // no event is left
		if err := s.runProject(ctx, id, true); err != nil {
			return err
		}
	}
	s.metrics.lastRun.SetToCurrentTime()
	return s.measureOldest(ctx, projects)
}

func (s *Service) measureOldest(ctx context.Context, projects []int64) error {
	var low time.Time
	for _, id := range projects {
		at, ok, err := s.events.Oldest(ctx, id, "", time.Time{})
		if err != nil {
			return err
		}
		if ok && (low.IsZero() || at.Before(low)) {
			low = at
		}
	}
	if low.IsZero() {
		low = s.now()
	}
	s.metrics.oldest.Set(float64(low.Unix()))
	return nil
}

// runProject deletes the old events of a project. resume finishes a run that was
// interrupted even if nothing is left to delete.
func (s *Service) runProject(ctx context.Context, projectID int64, resume bool) error {
	due, from, to, err := s.due(ctx, projectID)
	if err != nil || len(due) == 0 && !resume {
		return err
	}
	if len(due) > 0 {
		row := &runRow{ProjectID: projectID, FromAt: db.At(from), ToAt: db.At(to), StartedAt: db.Now()}
		if err := s.store.open(ctx, row); err != nil {
			return err
		}
	}
	for _, x := range due {
		if err := s.delete(ctx, x); err != nil {
			return err
		}
	}
	return s.finish(ctx, projectID)
}

// due returns the rules that have events to delete, and the times of these events.
func (s *Service) due(ctx context.Context, projectID int64) (due []events.Expiry, from, to time.Time, err error) {
	all, err := s.policyOf(projectID).expiries(projectID, s.now(), func() ([]string, error) { return s.events.Names(ctx, projectID) })
	for _, x := range all {
		at, ok, err := s.events.Oldest(ctx, projectID, x.Event, time.Time{})
		if err != nil {
			return nil, from, to, err
		}
		if !ok || !at.Before(x.Before) {
			continue
		}
		due = append(due, x)
		if from.IsZero() || at.Before(from) {
			from = at
		}
		if x.Before.After(to) {
			to = x.Before
		}
	}
	return due, from, to, err
}

func (s *Service) delete(ctx context.Context, x events.Expiry) error {
	for {
		start := time.Now()
		n, err := s.deleteChunk(ctx, x)
		if err != nil {
			return err
		}
		s.metrics.deleted.Add(float64(n))
		if n < chunk {
			return nil
		}
		if !retry.Sleep(ctx, min(max(pauseShare*time.Since(start), minPause), maxPause)) {
			return ctx.Err()
		}
		if err := s.waitForLog(ctx); err != nil {
			return err
		}
	}
}

func (s *Service) deleteChunk(ctx context.Context, x events.Expiry) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// A stop does not roll back a chunk that takes a moment.
	err = s.db.Tx(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		if n, err = s.events.DeleteExpired(ctx, x, chunk); err != nil || n == 0 {
			return err
		}
		return s.store.countDeleted(ctx, x.ProjectID, n)
	})
	return n, err
}

// waitForLog waits until the write-ahead log is short. A reader of old pages, such as a
// backup, keeps it from being emptied, and deletions would only make it longer.
func (s *Service) waitForLog(ctx context.Context) error {
	for s.db.LogBytes() > maxLog {
		done, err := s.db.TruncateLog(ctx)
		if err != nil || done {
			return err
		}
		if !retry.Sleep(ctx, logWait) {
			return ctx.Err()
		}
	}
	return nil
}

func (s *Service) finish(ctx context.Context, projectID int64) error {
	row, err := s.store.run(ctx, projectID)
	if err != nil || row == nil {
		return err
	}
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		if err := s.events.FinishExpiry(ctx, projectID, row.FromAt.Time, row.ToAt.Time); err != nil {
			return err
		}
		return s.store.finish(ctx, projectID)
	})
	if err != nil {
		return err
	}
	s.log.Info("old events deleted", zap.Int64("project_id", projectID), zap.Int64("events", row.Deleted),
		zap.Time("before", row.ToAt.Time), zap.Duration("took", time.Since(row.StartedAt.Time)))
	return nil
}

// loop runs at once when rules change, and each interval.
func (s *Service) loop(ctx context.Context) {
	wait := startDelay
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		wait = interval
		if err := s.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.metrics.failures.Inc()
			s.log.Warn("deletion of old events failed; retrying", zap.Error(err))
			wait = failureDelay
		}
	}
}
