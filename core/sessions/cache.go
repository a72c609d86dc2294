package sessions

import (
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

// stamp is what a session in memory depends on: the version of the accounts, and the
// number of revocations on this node.
type stamp struct{ accounts, revocations int64 }

type cached struct {
	holder Holder
	stamp  stamp // read before the session
	at     time.Time
}

// cache holds the sessions that were used lately.
type cache struct {
	limit int

	mu       sync.Mutex
	byDigest map[apikey.Digest]cached
}

// get returns a session that was read within ttl, and with the stamp of now.
func (c *cache) get(d apikey.Digest, now time.Time, ttl time.Duration, is stamp) (Holder, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.byDigest[d]
	if !ok || found.stamp != is || now.Sub(found.at) >= ttl {
		return Holder{}, false
	}
	return found.holder, true
}

// put adds a session. A full cache is cleared.
func (c *cache) put(d apikey.Digest, s cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byDigest) >= c.limit {
		clear(c.byDigest)
	}
	c.byDigest[d] = s
}
