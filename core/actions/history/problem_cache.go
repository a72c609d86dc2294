package history

import (
	"sync"
	"time"
)

// Problems are cached because lists show them. A problem changes with the
// definition and with the plugins that are running.
const (
	problemTTL  = 30 * time.Second
	maxProblems = 10_000
)

// problemCache caches the problems of definitions. The zero value is empty.
type problemCache struct {
	mu      sync.Mutex
	entries map[problemKey]cachedProblem
}

type problemKey struct {
	action, version int64
	zone            string
}

type cachedProblem struct {
	text string
	at   time.Time
}

// get returns the cached problem, or that of compute.
func (c *problemCache) get(key problemKey, compute func() string) string {
	c.mu.Lock()
	cached, ok := c.entries[key]
	c.mu.Unlock()
	if ok && time.Since(cached.at) < problemTTL {
		return cached.text
	}
	text := compute()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxProblems {
		c.entries = map[problemKey]cachedProblem{}
	}
	c.entries[key] = cachedProblem{text, time.Now()}
	return text
}
