package erasure

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// Begin marks the begin of a transaction that processes events. An erasure
// deletes nothing while a transaction is running that does not know it. The
// caller calls end after the commit.
func (s *Service) Begin() (end func()) { return s.memory.begin() }

// Concerns reports whether a reader of the journal may meet events of erased
// persons of the project. The caller is between Begin and end.
func (s *Service) Concerns(projectID int64) bool { return len(s.memory.marks[projectID]) > 0 }

// Verdict returns what becomes of an event of the record with this number. The
// caller is between Begin and end.
func (s *Service) Verdict(projectID int64, distinctID string, seq uint64) Verdict {
	return s.memory.verdict(projectID, distinctID, seq)
}

// Any reports whether a reader of the journal may meet events of erased persons. It
// costs one atomic load.
func (s *Service) Any() bool { return s.memory.some.Load() }

// Dropped reports whether the event of the record with this number was erased. The
// caller is not between Begin and end.
func (s *Service) Dropped(projectID int64, distinctID string, seq uint64) bool {
	s.memory.mu.RLock()
	defer s.memory.mu.RUnlock()
	return s.memory.verdict(projectID, distinctID, seq) == DropData
}

// DroppedAt is Dropped for an event without a record, by the time it was received.
func (s *Service) DroppedAt(ctx context.Context, projectID int64, distinctID string, received time.Time) (bool, error) {
	v, err := s.VerdictAt(ctx, projectID, distinctID, received)
	return v == DropData, err
}

// WaitRecovered returns when Recover has succeeded; false when ctx ends first.
func (s *Service) WaitRecovered(ctx context.Context) bool {
	select {
	case <-s.recovered:
		return true
	case <-ctx.Done():
		return false
	}
}

// VerdictAt returns what becomes of an event that was received at a time and has
// no place in the journal, such as that of a dead letter.
func (s *Service) VerdictAt(ctx context.Context, projectID int64, distinctID string, received time.Time) (Verdict, error) {
	if err := s.load(ctx); err != nil {
		return Keep, err
	}
	m, err := s.store.markOf(ctx, projectID, hashID(s.memory.key, projectID, distinctID))
	return m.verdictAt(received), err
}

// Recover carries out the erasures in the journal after a record that the
// database does not know, because it was restored from a backup. It returns when
// that is done, or when ctx ends; then the result is false. The pipeline calls it
// before it processes the first event behind that record.
func (s *Service) Recover(ctx context.Context, after uint64) bool {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: pollInterval}
	ok := retry.Until(ctx, backoff, func() error { return s.recover(ctx, after) },
		func(err error) { s.log.Warn("waiting to recover erasures from the journal", zap.Error(err)) })
	if ok {
		s.once.Do(func() { close(s.recovered) })
	}
	return ok
}

func (s *Service) recover(ctx context.Context, after uint64) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	stats, err := s.journal.Stats(ctx)
	if err != nil {
		return err
	}
	found, err := s.scanJournal(ctx, max(after, stats.First-1), stats.Last)
	if err != nil || len(found) == 0 {
		return err
	}
	unlock, err := s.lockProcessing(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for i := range found {
		done, err := s.store.isDone(ctx, found[i].ID)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		if err := s.store.insert(ctx, &found[i]); err != nil {
			return err
		}
		if err := s.carryOut(ctx, &found[i]); err != nil {
			return err
		}
		s.log.Info("erasure recovered from the journal", zap.String("erasure", found[i].ID), zap.Uint64("seq", found[i].Seq))
	}
	return nil
}
