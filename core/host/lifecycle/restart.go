package lifecycle

import (
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
)

// Restarts computes what follows the exits of one instance. Time and randomness are
// arguments. The zero value with Settings has seen no exit. It is not safe for
// concurrent use.
//
// The delays are not those of core/retry: the first restart is immediate, and the
// jitter covers the whole delay and is the same for all instances of a process.
type Restarts struct {
	Settings settings.Restart
	// NoQuarantine is for a process that the host does not start: its exits only
	// delay the next connection.
	NoQuarantine bool

	tries int
	exits []time.Time
}

// Next returns the delay before the next start after an exit at now. ready is how
// long the instance was ready, random returns a number in [0, 1). quarantine is
// true after too many exits.
func (r *Restarts) Next(now time.Time, ready time.Duration, random func() float64) (delay time.Duration, quarantine bool) {
	if ready >= r.Settings.ResetAfter {
		r.Reset()
	}
	recent := r.exits[:0]
	for _, at := range r.exits {
		if since := now.Sub(at); since >= 0 && since < r.Settings.QuarantineWindow { // negative after the clock was set back
			recent = append(recent, at)
		}
	}
	r.exits = append(recent, now)
	if len(r.exits) >= r.Settings.QuarantineExits && !r.NoQuarantine {
		return 0, true
	}
	r.tries++
	return Delay(r.Settings, r.tries-1, random), false
}

// Tries returns the number of restarts since the last Reset.
func (r *Restarts) Tries() int { return r.tries }

// Reset forgets all exits.
func (r *Restarts) Reset() { r.tries, r.exits = 0, nil }

// Delay returns the delay before retry n: none for n = 0, then a random part of a
// bound that doubles from Initial to Max.
func Delay(s settings.Restart, n int, random func() float64) time.Duration {
	if n <= 0 {
		return 0
	}
	bound := s.Max
	if n <= 20 {
		bound = min(s.Max, s.Initial<<(n-1))
	}
	return time.Duration(random() * float64(bound))
}
