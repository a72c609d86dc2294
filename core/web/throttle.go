package web

import (
	"math"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"golang.org/x/time/rate"
)

// throttle limits how often each of many keys may pass. A nil throttle lets
// everybody through.
type throttle struct {
	limit  rate.Limit
	burst  int
	mu     sync.RWMutex
	bucket map[int64]*rate.Limiter
}

func newThrottle(r Rate) *throttle {
	if r.PerSecond == 0 {
		return nil
	}
	burst := r.Burst
	if burst == 0 {
		burst = max(1, int(math.Ceil(r.PerSecond)))
	}
	return &throttle{limit: rate.Limit(r.PerSecond), burst: burst, bucket: map[int64]*rate.Limiter{}}
}

// take returns nil, or Throttled with the time until key may come again.
func (t *throttle) take(key int64) error {
	if t == nil {
		return nil
	}
	b := t.of(key)
	if b.Allow() {
		return nil
	}
	missing := 1 - b.Tokens()
	wait := time.Duration(missing / float64(t.limit) * float64(time.Second))
	return fault.New(fault.Throttled, "throttled", "").After(max(wait, time.Second))
}

func (t *throttle) of(key int64) *rate.Limiter {
	t.mu.RLock()
	b := t.bucket[key]
	t.mu.RUnlock()
	if b != nil {
		return b
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b = t.bucket[key]; b == nil {
		b = rate.NewLimiter(t.limit, t.burst)
		t.bucket[key] = b
	}
	return b
}
