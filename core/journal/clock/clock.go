// Package clock is a wall clock that ignores short jumps, for the stamps of records
// and for retention by age.
package clock

import (
	"sync"
	"time"
)

const (
	slack = time.Minute // a difference this small is drift, not a jump
	trust = time.Hour   // a jump that lasted this long was a correction
)

// Clock is a wall clock that ignores short jumps. A clock that is set back repeats
// the last stamp of a record for an hour, and then is believed. A clock that was
// ahead, and is right again, gives right stamps at once: one stamp is earlier than
// that before it. Retention by age uses Now, which accepts a jump only after an hour, so that a short mistake does
// not expire everything.
type Clock struct {
	now Source

	mu        sync.Mutex
	offset    int64         // believed: wall minus run, in microseconds
	candidate int64         // an offset that is not believed yet
	since     time.Duration // when it was first seen; 0 when there is none
}

// Now returns the time for computing ages. It must be called more than once an
// hour to detect jumps.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.Trusted()).UTC() }

// Source returns the wall clock in Unix microseconds, and the time since a
// fixed moment on a monotonic clock.
type Source func() (wall int64, run time.Duration)

// New returns a Clock that starts at the wall clock. A nil now reads the
// clocks of the machine.
func New(now Source) *Clock {
	if now == nil {
		start := time.Now()
		now = func() (int64, time.Duration) {
			t := time.Now()
			return t.UnixMicro(), t.Sub(start)
		}
	}
	wall, run := now()
	return &Clock{now: now, offset: wall - run.Microseconds()}
}

// Stamp returns the time of a new record in Unix microseconds. last is the stamp of
// the record before it.
func (c *Clock) Stamp(last int64) int64 {
	wall, _ := c.now()
	if !IsAhead(last, wall) {
		return max(wall, last)
	}
	return max(wall, min(last, c.Trusted()))
}

// IsAhead reports whether a stamp is from a time at which the clock was ahead of now,
// by more than drift.
func IsAhead(stamp, now int64) bool { return stamp-now > slack.Microseconds() }

// Trusted returns the time for computing ages in Unix microseconds.
func (c *Clock) Trusted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, run := c.now()
	seen := wall - run.Microseconds()
	switch {
	case near(seen, c.offset):
		c.offset, c.since = seen, 0
	case c.since == 0 || !near(seen, c.candidate):
		c.candidate, c.since = seen, run
	case run-c.since >= trust:
		c.offset, c.since = seen, 0
	}
	return run.Microseconds() + c.offset
}

func near(a, b int64) bool {
	return max(a-b, b-a) <= slack.Microseconds()
}
