package auth

import (
	"sync"
	"time"
)

// negativeCache remembers unknown keys for a short time, so that a client with
// an invalid key does not cause a query with every request.
type negativeCache struct {
	limit int
	ttl   time.Duration

	mu   sync.Mutex
	seen map[string]time.Time
}

func newNegativeCache(limit int, ttl time.Duration) *negativeCache {
	return &negativeCache{limit: limit, ttl: ttl, seen: map[string]time.Time{}}
}

func (c *negativeCache) has(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.seen[key]
	return ok && time.Since(at) < c.ttl
}

// add adds key. A full cache is cleared: keeping an order would not help against
// a flood of new keys.
func (c *negativeCache) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= c.limit {
		clear(c.seen)
	}
	c.seen[key] = time.Now()
}
