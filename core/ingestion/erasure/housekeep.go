package erasure

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/journal"
)

// truncateLog empties the write-ahead log of the database after an erasure. If
// readers prevent it, housekeep tries again.
func (s *Service) truncateLog(ctx context.Context) error {
	if !s.truncate.Load() {
		return nil
	}
	done, err := s.db.TruncateLog(ctx)
	if done {
		s.truncate.Store(false)
	}
	return err
}

// housekeep removes erasures from memory that all readers have passed, and dead
// letters of erased persons that a sink has added since.
func (s *Service) housekeep(ctx context.Context) error {
	if s.partitions == nil {
		stats, err := s.journal.Stats(ctx)
		if err != nil {
			return fmt.Errorf("read the state of the journal: %w", err)
		}
		s.memory.prune(s.passed(stats))
	}
	if err := s.truncateLog(ctx); err != nil {
		return err
	}
	return s.sweepDeadLetters(ctx)
}

// passed returns the number of the record that every reader which filters events
// has passed.
func (s *Service) passed(stats journal.Stats) uint64 {
	s.mu.Lock()
	progress := s.progress
	s.mu.Unlock()
	if progress == nil {
		return 0
	}
	low := min(progress(), uint64(math.MaxInt64))
	for _, r := range stats.Readers {
		if strings.HasPrefix(r.Name, "follower/") || strings.Contains(r.Name, deadletter.SourceSink) {
			low = min(low, r.Position.Seq)
		}
	}
	return low
}

// sweepDeadLetters deletes the dead letters added since the last sweep whose
// events belong to erased persons: a sink may reject an event after the erasure
// that was accepted before it.
func (s *Service) sweepDeadLetters(ctx context.Context) error {
	for {
		list, err := s.deadLetters.After(ctx, s.swept, 500)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			e := &list[i]
			v, err := s.VerdictAt(ctx, e.ProjectID, e.DistinctID, e.ReceivedAt)
			if err != nil {
				return err
			}
			if v == DropData {
				if err := s.deadLetters.Remove(ctx, e.ID); err != nil {
					return err
				}
			}
			s.swept = e.ID
		}
	}
}
