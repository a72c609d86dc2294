package web

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/guidonhq/guidon/core/fault"
)

// rateLimiter limits requests per key. A nil rateLimiter allows everything.
type rateLimiter struct {
	limit    rate.Limit
	burst    int
	mu       sync.RWMutex
	limiters map[int64]*rate.Limiter
}

func newRateLimiter(r Rate) *rateLimiter {
	if r.PerSecond == 0 {
		return nil
	}
	burst := r.Burst
	if burst == 0 {
		burst = max(1, int(math.Ceil(r.PerSecond)))
	}
	return &rateLimiter{limit: rate.Limit(r.PerSecond), burst: burst, limiters: map[int64]*rate.Limiter{}}
}

// allow returns nil, or Throttled with the time until the key may send again.
func (l *rateLimiter) allow(key int64) error {
	if l == nil {
		return nil
	}
	b := l.limiterOf(key)
	if b.Allow() {
		return nil
	}
	missing := 1 - b.Tokens()
	wait := time.Duration(missing / float64(l.limit) * float64(time.Second))
	return fault.New(fault.Throttled, "throttled", "").After(max(wait, time.Second))
}

func (l *rateLimiter) limiterOf(key int64) *rate.Limiter {
	l.mu.RLock()
	b := l.limiters[key]
	l.mu.RUnlock()
	if b != nil {
		return b
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b = l.limiters[key]; b == nil {
		b = rate.NewLimiter(l.limit, l.burst)
		l.limiters[key] = b
	}
	return b
}
