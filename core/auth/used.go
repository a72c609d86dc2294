package auth

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// usedEvery is how often the last use of personal keys is written down.
const usedEvery = time.Minute

// used collects when personal keys were last used.
type used struct {
	mu   sync.Mutex
	last map[int64]time.Time
}

func newUsed() *used { return &used{last: map[int64]time.Time{}} }

func (u *used) now(keyID int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[keyID] = time.Now()
}

// take returns what was collected and begins anew.
func (u *used) take() map[int64]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.last) == 0 {
		return nil
	}
	out := u.last
	u.last = map[int64]time.Time{}
	return out
}

// giveBack keeps what could not be written, unless newer uses came in.
func (u *used) giveBack(old map[int64]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(old, u.last)
	u.last = old
}

func (s *Service) saveUsed(ctx context.Context) error {
	last := s.used.take()
	if last == nil {
		return nil
	}
	if err := s.store.markUsed(ctx, last); err != nil {
		s.used.giveBack(last)
		return fmt.Errorf("write down the last use of %d personal keys: %w", len(last), err)
	}
	return nil
}
