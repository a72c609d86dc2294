package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/retry"
)

// run carries out open erasures until drainCtx ends.
func (s *Service) run(drainCtx, killCtx context.Context) {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: pollInterval}
	interval, kept := pollInterval, time.Time{}
	if s.jobs != nil {
		interval = sharedPollInterval
	}
	for drainCtx.Err() == nil {
		err := s.processOpen(drainCtx, killCtx)
		if err == nil && time.Since(kept) >= pollInterval-interval {
			err, kept = s.housekeep(drainCtx), time.Now()
		}
		wait := interval
		if err == nil {
			backoff.Reset()
		} else if drainCtx.Err() == nil {
			wait = backoff.Next()
			s.log.Warn("erasure delayed", zap.Error(err))
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-drainCtx.Done():
		}
		timer.Stop()
	}
}

// openPage is the number of open erasures that are read at a time.
const openPage = 1000

// processOpen carries out the open erasures. One that fails does not stop the
// others.
func (s *Service) processOpen(drainCtx, killCtx context.Context) error {
	if err := s.load(drainCtx); err != nil {
		return err
	}
	var failures []error
	for after := (openKey{}); ; {
		page, next, err := s.openErasures(drainCtx, killCtx, after)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		for i := range page {
			if drainCtx.Err() != nil {
				return drainCtx.Err()
			}
			err := s.carryOutOpen(drainCtx, killCtx, &page[i])
			s.finish(&page[i], err)
			failures = append(failures, err)
		}
		if len(page) < openPage {
			return errors.Join(failures...)
		}
		after = next
	}
}

// openErasures returns a page of the erasures that are not done, and where the next one
// begins. On a log in partitions they are remembered together.
func (s *Service) openErasures(drainCtx, killCtx context.Context, after openKey) (page []Erasure, next openKey, err error) {
	unlock, err := s.lockProcessing(drainCtx)
	if err != nil {
		return nil, after, err
	}
	defer unlock()
	page, next, err = s.store.openErasures(drainCtx, after, openPage)
	if err == nil && s.partitions != nil && len(page) > 1 {
		s.rememberTogether(killCtx, page)
	}
	return page, next, err
}

// lockProcessing waits until no erasure is carried out; the caller calls unlock. It fails
// when ctx ends.
func (s *Service) lockProcessing(ctx context.Context) (unlock func(), err error) {
	select {
	case s.processing <- struct{}{}:
		return func() { <-s.processing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// carryOutOpen carries out an erasure that was open. Recover may have done it since.
func (s *Service) carryOutOpen(drainCtx, killCtx context.Context, e *Erasure) error {
	unlock, err := s.lockProcessing(drainCtx)
	if err != nil {
		return err
	}
	defer unlock()
	if done, err := s.store.isDone(drainCtx, e.ID); err != nil || done {
		return err
	}
	return s.carryOut(killCtx, e)
}

// finish logs the end of an erasure and answers its request.
func (s *Service) finish(e *Erasure, err error) {
	fields := []zap.Field{zap.String("erasure", e.ID), zap.Int64("project_id", e.ProjectID), zap.Int("distinct_ids", len(e.DistinctIDs)), zap.Bool("events", e.Events)}
	if err != nil {
		s.log.Warn("erasure failed; it is tried again", append(fields, zap.Error(err))...)
	} else {
		s.log.Info("person erased", fields...)
	}
	s.answer(e.ID, err)
}

// carryOut records, remembers and deletes. Each step may be repeated.
func (s *Service) carryOut(ctx context.Context, e *Erasure) error {
	for {
		if err := s.remember(ctx, e); err != nil {
			return err
		}
		more, err := s.newIDs(ctx, e)
		if err != nil {
			return err
		}
		if len(more) == 0 {
			break
		}
		e.DistinctIDs, e.Seq = append(e.DistinctIDs, more...), 0
	}
	return s.remove(ctx, e)
}

// remove deletes the data of an erasure that every transaction knows. The lease is
// checked before, not in the transactions of the removal: another node that has it begins
// the same removal again, which finds nothing.
func (s *Service) remove(ctx context.Context, e *Erasure) error {
	if err := cluster.Fence(ctx); err != nil {
		return err
	}
	if err := s.persons.Remove(ctx, &e.Removal); err != nil {
		return err
	}
	if err := s.store.finish(ctx, e); err != nil {
		return err
	}
	s.truncate.Store(true)
	if err := s.truncateLog(ctx); err != nil {
		s.log.Warn("write-ahead log of the database not truncated after erasure", zap.Error(err))
	}
	return nil
}

// remember appends the record to the journal, unless that was done, and writes
// the marks. When it returns, every transaction of the pipeline that does not know
// the erasure has ended.
func (s *Service) remember(ctx context.Context, e *Erasure) error {
	if s.partitions != nil {
		return s.rememberOnLog(ctx, e)
	}
	if e.Seq == 0 || e.Journal != s.journalID() {
		if _, err := s.store.markBegun(ctx, s.journalID(), []*Erasure{e}); err != nil {
			return err
		}
		data, err := e.record()
		if err != nil {
			return err
		}
		if e.Seq, err = s.journal.Append(ctx, data); err != nil {
			e.Seq = 0
			return errors.Join(fmt.Errorf("append erasure to the journal: %w", err), s.store.clearBegun(ctx, []*Erasure{e}))
		}
		e.Journal = s.journalID()
	}
	if err := s.store.remember(ctx, s.memory.key, []*Erasure{e}, []place{{e.Journal, e.Seq}}, false); err != nil {
		return err
	}
	s.memory.publish(e)
	return nil
}

// record returns the bytes of the record of an erasure.
func (e *Erasure) record() ([]byte, error) {
	record := event.Erasure{ID: e.ID, ProjectID: e.ProjectID, DistinctIDs: e.DistinctIDs, Events: e.Events, At: e.RequestedAt}
	return record.Append(nil)
}

// newIDs returns the distinct ids that the person got since the erasure was
// requested.
func (s *Service) newIDs(ctx context.Context, e *Erasure) ([]string, error) {
	if e.PersonID == 0 {
		return nil, nil
	}
	p, err := s.persons.Get(ctx, e.ProjectID, strconv.FormatInt(e.PersonID, 10))
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(p.DistinctIDs, func(id string) bool { return slices.Contains(e.DistinctIDs, id) }), err
}
