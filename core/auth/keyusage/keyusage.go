// Package keyusage collects in memory when keys were last used, until a caller
// saves it.
package keyusage

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Usage holds the last use of keys by their id. It is safe for concurrent use.
type Usage struct {
	mu   sync.Mutex
	last map[int64]time.Time
}

// New returns an empty usage.
func New() *Usage { return &Usage{last: map[int64]time.Time{}} }

type unrecorded struct{}

// Unrecorded returns a context in which a look at a key is not a use of it, as the check of
// an answer that goes on.
func Unrecorded(ctx context.Context) context.Context {
	return context.WithValue(ctx, unrecorded{}, true)
}

// Record sets the last use of a key to now, unless ctx is Unrecorded.
func (u *Usage) Record(ctx context.Context, keyID int64) {
	if ctx.Value(unrecorded{}) != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[keyID] = time.Now()
}

// Drain returns and forgets the collected uses; nil for none.
func (u *Usage) Drain() map[int64]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.last) == 0 {
		return nil
	}
	out := u.last
	u.last = map[int64]time.Time{}
	return out
}

// Restore adds back uses that were not saved, except for newer ones. It changes old.
func (u *Usage) Restore(old map[int64]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(old, u.last)
	u.last = old
}
