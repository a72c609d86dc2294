package decide

import (
	"sync"
	"sync/atomic"
	"time"
)

// Lookups open the breaker if at least half of breakerSample in a window fail: a few
// slow lookups must not make other requests use older data.
const (
	breakerWindow = 10 * time.Second
	breakerSample = 20
)

// breaker keeps requests away from a database whose lookups fail. All kinds of
// lookups share it, because they read from one database. It is safe for concurrent
// use.
//
//	closed     lookups are made. It opens at a rate of failures in a window, which
//	           begins with a failure.
//	open       lookups are refused for the pause
//	half-open  one lookup at a time is made: success closes, failure opens
type breaker struct {
	troubled  atomic.Bool  // a window runs, or the breaker is not closed
	openUntil atomic.Int64 // in nanoseconds, see ticks; 0 while it is closed
	probing   atomic.Bool  // a lookup is made while it is half-open

	mu            sync.Mutex
	windowEnd     time.Time
	total, failed int // in the window
}

var began = time.Now()

// ticks returns a time as nanoseconds since the start of the process, so that a clock
// that is set back does not keep the breaker open.
func ticks(at time.Time) int64 { return int64(at.Sub(began)) }

// allow reports whether a lookup may be made. Its end must be recorded.
func (b *breaker) allow(now time.Time) bool {
	until := b.openUntil.Load()
	return until == 0 || ticks(now) >= until && b.probing.CompareAndSwap(false, true)
}

// recordSuccess counts a success, and closes the breaker. Without failures before
// it, it writes nothing: all requests share the breaker.
func (b *breaker) recordSuccess(now time.Time) {
	if !b.troubled.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.openUntil.Load() != 0 || now.After(b.windowEnd) {
		b.reset()
		return
	}
	b.total++
}

// recordFailure counts a failure, which may open the breaker for the pause.
func (b *breaker) recordFailure(now time.Time, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.openUntil.Load() != 0 {
		b.openUntil.Store(ticks(now.Add(pause)))
		b.probing.Store(false)
		return
	}
	if !b.troubled.Load() || now.After(b.windowEnd) {
		b.total, b.failed, b.windowEnd = 0, 0, now.Add(breakerWindow)
		b.troubled.Store(true)
	}
	b.total++
	b.failed++
	if b.total >= breakerSample && 2*b.failed >= b.total && pause > 0 {
		b.openUntil.Store(ticks(now.Add(pause)))
	}
}

// recordCanceled ends a lookup whose request ended: it says nothing about the
// database.
func (b *breaker) recordCanceled() { b.probing.Store(false) }

// isOpen reports whether the breaker is not closed.
func (b *breaker) isOpen() bool { return b.openUntil.Load() != 0 }

func (b *breaker) reset() {
	b.total, b.failed = 0, 0
	b.openUntil.Store(0)
	b.probing.Store(false)
	b.troubled.Store(false)
}
