package auth

import (
	"sync"
	"time"
)

// unknown remembers for a short while that nobody has a key, so that a client
// that insists on one does not reach the store with every request.
type unknown struct {
	limit int
	ttl   time.Duration

	mu   sync.Mutex
	seen map[string]time.Time
}

func newUnknown(limit int, ttl time.Duration) *unknown {
	return &unknown{limit: limit, ttl: ttl, seen: map[string]time.Time{}}
}

func (u *unknown) has(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.seen[key]
	return ok && time.Since(at) < u.ttl
}

// add keeps key. When there are too many, all are forgotten: whoever floods us
// with fresh ones gains nothing from order here.
func (u *unknown) add(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) >= u.limit {
		clear(u.seen)
	}
	u.seen[key] = time.Now()
}
