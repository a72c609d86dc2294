package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/events/clickhouse/erased"
	"github.com/guidonhq/guidon/core/events/clickhouse/mutation"
	"github.com/guidonhq/guidon/core/retry"
)

// The bounds of an attempt to delete events, and how often recorded erasures are looked for.
// A deletion that is not done by then goes on in ClickHouse, and the next attempt waits for it.
const (
	eraseTimeout  = time.Minute
	expireTimeout = 10 * time.Minute
	erasePoll     = 5 * time.Second
	eraseRetryMax = time.Minute
	repeatAfter   = 15 * time.Minute // longer than a statement may take
)

// deleteErased deletes the events of the recorded erasures that have one of the distinct ids.
func (s *Store) deleteErased(ctx context.Context, projectID int64, distinctIDs []string) error {
	list, err := s.erased.Open(ctx, projectID)
	if err != nil {
		return err
	}
	for i := range list {
		ids, err := list[i].DistinctIDs()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(distinctIDs, id) }) {
			continue
		}
		if err := s.finishErasure(ctx, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// finishErasure deletes the events of a recorded erasure.
func (s *Store) finishErasure(ctx context.Context, e *erased.Erasure) error {
	condition, err := e.Condition()
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.eraseTimeout)
	defer cancel()
	if err := s.deleter.DeleteOnce(bounded, fmt.Sprint("erasure ", e.ID, ": ", condition), condition); err != nil {
		return err
	}
	return s.erased.MarkDeleted(ctx, e.ID)
}

// repeatErasures deletes the events of erasures that were deleted repeatAfter ago once more, and
// forgets these erasures: an insertion that a stopped node had sent before may have arrived
// since. It deletes nothing if no such event is there.
func (s *Store) repeatErasures(ctx context.Context) error {
	list, err := s.erased.Deleted(ctx, s.repeatAfter)
	if err != nil {
		return err
	}
	for i := range list {
		condition, err := list[i].Condition()
		if err != nil {
			return err
		}
		n, err := s.number(ctx, "count()", condition)
		if err == nil && n > 0 {
			s.log.Warn("events of an erasure arrived late; deleting them", zap.Int64("erasure", list[i].ID), zap.Int64("events", n))
			bounded, cancel := context.WithTimeout(ctx, s.eraseTimeout)
			err = s.deleter.DeleteOnce(bounded, fmt.Sprint("late events of erasure ", list[i].ID, ": ", condition), condition)
			cancel()
		}
		if err == nil {
			err = s.erased.Remove(ctx, list[i].ID)
		}
		if err != nil && !errors.Is(err, mutation.ErrUnfinished) {
			return err
		}
	}
	return nil
}

// finishErasures deletes the events of recorded erasures until ctx ends: those of an earlier
// process, of another node, and those that ClickHouse did not finish in time.
func (s *Store) finishErasures(ctx context.Context) {
	backoff := retry.Backoff{Min: retryMin, Max: eraseRetryMax}
	for {
		err := errors.Join(s.finishRecorded(ctx), s.repeatErasures(ctx))
		if ctx.Err() != nil {
			return
		}
		wait := erasePoll
		if err == nil {
			backoff.Reset()
		} else {
			wait = backoff.Next()
			s.log.Warn("ClickHouse does not delete erased events; retrying", zap.Error(err), zap.Duration("after", wait))
		}
		s.health.RecordDeletion(err)
		if !retry.Sleep(ctx, wait) {
			return
		}
	}
}

// finishRecorded tries each recorded erasure once. A failure does not stop the others. An
// unfinished one is no error.
func (s *Store) finishRecorded(ctx context.Context) error {
	list, err := s.erased.Open(ctx, 0)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for i := range list {
		one := s.finishErasure(ctx, &list[i])
		if errors.Is(one, mutation.ErrUnfinished) {
			s.log.Info("erased events are not deleted yet", zap.Int64("erasure", list[i].ID), zap.Duration("waited", s.eraseTimeout))
			continue
		}
		if err == nil {
			err = one
		}
	}
	return err
}
