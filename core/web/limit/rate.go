package limit

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/guidonhq/guidon/core/fault"
)

// Rate is a limit with bursts. The zero Rate does not limit.
type Rate struct {
	// PerSecond is the sustained number of requests per second; 0 disables the limit.
	PerSecond float64 `koanf:"per_second"`
	// Burst is the number of requests at one time; 0 means one second's worth.
	Burst int `koanf:"burst"`
}

// Validate returns an error that names the setting.
func (r Rate) Validate(name string) error {
	if r.PerSecond < 0 || r.Burst < 0 {
		return fmt.Errorf("%s: per_second and burst must not be negative", name)
	}
	return nil
}

// Limiter limits the rate of each key. A nil Limiter allows everything. It is
// safe for concurrent use.
type Limiter[K comparable] struct {
	limit rate.Limit
	burst int
	max   int

	mu      sync.RWMutex
	buckets map[K]*bucket
	clock   atomic.Int64 // counts uses; orders the buckets by their last use
}

type bucket struct {
	*rate.Limiter
	used atomic.Int64
}

// New returns a limiter with at most maxKeys keys, nil for a Rate without a
// limit.
func New[K comparable](r Rate, maxKeys int) *Limiter[K] {
	if r.PerSecond == 0 {
		return nil
	}
	burst := r.Burst
	if burst == 0 {
		burst = max(1, int(math.Ceil(r.PerSecond)))
	}
	return &Limiter[K]{limit: rate.Limit(r.PerSecond), burst: burst, max: maxKeys, buckets: map[K]*bucket{}}
}

// Take counts one use of key. It returns Throttled, with the time until the
// next use is allowed, if the limit of key is reached; such a use is not
// counted.
func (l *Limiter[K]) Take(key K) error {
	if l == nil {
		return nil
	}
	b := l.bucketOf(key)
	if b.Allow() {
		return nil
	}
	return l.throttled(b)
}

// Used reports whether any key was used. It costs almost nothing.
func (l *Limiter[K]) Used() bool { return l != nil && l.clock.Load() > 0 }

// Exhausted returns Throttled if the limit of key is reached. It counts
// nothing.
func (l *Limiter[K]) Exhausted(key K) error {
	if l == nil {
		return nil
	}
	l.mu.RLock()
	b := l.buckets[key]
	l.mu.RUnlock()
	if b == nil || b.Tokens() >= 1 {
		return nil
	}
	return l.throttled(b)
}

// Len returns the number of keys in memory.
func (l *Limiter[K]) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.buckets)
}

func (l *Limiter[K]) throttled(b *bucket) error {
	missing := 1 - b.Tokens()
	wait := time.Duration(missing / float64(l.limit) * float64(time.Second))
	return fault.New(fault.Throttled, "throttled", "").After(max(wait, time.Second))
}

func (l *Limiter[K]) bucketOf(key K) *bucket {
	l.mu.RLock()
	b := l.buckets[key]
	l.mu.RUnlock()
	if b == nil {
		b = l.add(key)
	}
	b.used.Store(l.clock.Add(1))
	return b
}

func (l *Limiter[K]) add(key K) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= l.max {
		l.evict()
	}
	b := &bucket{Limiter: rate.NewLimiter(l.limit, l.burst)}
	l.buckets[key] = b
	return b
}

// evictSample is the number of buckets that evict compares. Map iteration
// begins at a random place.
const evictSample = 16

// evict removes the least recently used of a random sample of buckets, as Redis
// does: almost LRU, without a list that every use would have to lock.
func (l *Limiter[K]) evict() {
	var (
		oldest K
		age    int64 = math.MaxInt64
		seen   int
	)
	for key, b := range l.buckets {
		if used := b.used.Load(); used < age {
			oldest, age = key, used
		}
		if seen++; seen == evictSample {
			break
		}
	}
	delete(l.buckets, oldest)
}
