package auth

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// usageInterval is the time between saves of the last use of personal keys.
const usageInterval = time.Minute

// keyUsage collects when personal keys were last used.
type keyUsage struct {
	mu   sync.Mutex
	last map[int64]time.Time
}

func newKeyUsage() *keyUsage { return &keyUsage{last: map[int64]time.Time{}} }

func (u *keyUsage) record(keyID int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[keyID] = time.Now()
}

// drain returns and forgets the collected uses.
func (u *keyUsage) drain() map[int64]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.last) == 0 {
		return nil
	}
	out := u.last
	u.last = map[int64]time.Time{}
	return out
}

// restore adds back uses that were not saved, except for newer ones.
func (u *keyUsage) restore(old map[int64]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(old, u.last)
	u.last = old
}

func (a *authenticator) saveUsage(ctx context.Context) error {
	last := a.usage.drain()
	if last == nil {
		return nil
	}
	if err := a.store.saveKeyUsage(ctx, last); err != nil {
		a.usage.restore(last)
		return fmt.Errorf("save the last use of %d personal keys: %w", len(last), err)
	}
	return nil
}
