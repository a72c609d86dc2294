package journal

import (
	"sync"
	"time"
)

const (
	clockSlack = time.Minute // a difference this small is drift, not a jump
	clockTrust = time.Hour   // a jump that lasted this long was a correction
)

// Clock reads the wall clock with suspicion. Records carry the wall clock made
// non-decreasing, so a clock that is set back only makes time stand still for
// a while. Retention by age asks for old: there, a clock that leaps is only
// believed after an hour, so that a short mistake does not expire everything.
type Clock struct {
	now clockFunc

	mu      sync.Mutex
	offset  int64         // believed: wall minus run, in microseconds
	doubted int64         // an offset that is not believed yet
	since   time.Duration // when it was first seen; 0 when there is none
}

// Now is the time that ages are counted from. It has to be asked more often
// than once an hour to know a leap when it sees one.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.old()).UTC() }

// clockFunc is the wall clock in Unix microseconds, and the time since some
// fixed moment on a clock that nobody can set.
type clockFunc func() (wall int64, run time.Duration)

// NewClock returns a Clock that believes what the wall clock says now. A nil now
// reads the clocks of the machine.
func NewClock(now clockFunc) *Clock {
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

// stamp is the time for a new record, in Unix microseconds, never before last.
func (c *Clock) stamp(last int64) int64 {
	wall, _ := c.now()
	return max(wall, last)
}

// old is the time in Unix microseconds that ages are counted from.
func (c *Clock) old() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, run := c.now()
	seen := wall - run.Microseconds()
	switch {
	case near(seen, c.offset):
		c.offset, c.since = seen, 0
	case c.since == 0 || !near(seen, c.doubted):
		c.doubted, c.since = seen, run
	case run-c.since >= clockTrust:
		c.offset, c.since = seen, 0
	}
	return run.Microseconds() + c.offset
}

func near(a, b int64) bool {
	return max(a-b, b-a) <= clockSlack.Microseconds()
}
