package auth

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
)

const (
	// patience bounds one look at the store.
	patience = 5 * time.Second
	// pause is how long after a failure nobody asks the store again.
	pause = 250 * time.Millisecond
)

// refresher lets one goroutine at a time compare memory with the store, and
// lets those who waited meanwhile share what it found.
type refresher struct {
	turn  chan struct{} // held by who compares
	began time.Time     // of the last comparison
	err   error         // of the last comparison
	ended time.Time
}

func newRefresher() refresher { return refresher{turn: make(chan struct{}, 1)} }

// current returns memory as it was in the store at since or later. However
// many ask at once, the store answers one of them at a time, and everybody who
// asked before a comparison began shares its outcome. It fails with
// Unavailable when the store cannot be asked.
func (s *Service) current(ctx context.Context, since time.Time) (*memory, error) {
	select {
	case s.refresh.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	changed := s.compare(since)
	m, err := s.memory.Load(), s.refresh.err
	<-s.refresh.turn
	if changed {
		s.announce()
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

// compare makes memory what the store holds, unless that was done since, or
// failed just now. It reports whether memory changed.
func (s *Service) compare(since time.Time) bool {
	r := &s.refresh
	if r.began.After(since) || (r.err != nil && time.Since(r.ended) < pause) {
		return false
	}
	// The time is not the asker's: others share the answer.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	failed := r.err != nil
	r.began = time.Now()
	fresh, err := s.store.memory(ctx, s.memory.Load(), s.cfg.ReloadInterval)
	r.ended, r.err = time.Now(), err
	if err != nil {
		s.metrics.failures.Inc()
		if !failed {
			s.log.Warn("projects and keys cannot be compared with the database; memory goes on to be answered", zap.Error(err))
		}
		return false
	}
	if failed {
		s.log.Info("projects and keys are compared with the database again")
	}
	return s.remember(fresh)
}

// remember puts fresh in place of what memory held and reports whether that
// differs.
func (s *Service) remember(fresh *memory) bool {
	old := s.memory.Load()
	if fresh == old {
		return false
	}
	s.memory.Store(fresh)
	s.metrics.keys.Set(float64(len(fresh.byKey)))
	return old != nil && !old.holdsSame(fresh)
}

// keepCurrent compares memory with the store until ctx ends, and now and then
// writes down which personal keys were used.
func (s *Service) keepCurrent(ctx context.Context) {
	defer close(s.done)
	compare, save := time.NewTicker(s.cfg.RefreshInterval), time.NewTicker(usedEvery)
	defer compare.Stop()
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-compare.C:
			_, _ = s.current(ctx, time.Now()) // compare logs what went wrong
		case <-save.C:
			if err := s.saveUsed(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("the last use of personal keys is not written down", zap.Error(err))
			}
		}
	}
}
