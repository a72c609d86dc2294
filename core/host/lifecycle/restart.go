package lifecycle

import (
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
)

// maxQuarantineDoublings bounds the quarantine: 32 times its first duration.
const maxQuarantineDoublings = 5

// Restarts computes what follows the exits of one instance. Time and randomness are
// arguments. The zero value with Settings has seen no exit. It is not safe for
// concurrent use.
//
// The delays are not those of core/retry: the first restart is immediate, and the
// jitter is the same for all instances of a process.
type Restarts struct {
	Settings settings.Restart
	// NoQuarantine is for a process that the host does not start, whose exits only
	// delay the next connection, and for an instance that is restarted always.
	NoQuarantine bool

	tries       int
	exits       []time.Time
	quarantines int // in a row
}

// Next returns the delay before the next start after an exit at now. ready is how
// long the instance was ready, random returns a number in [0, 1). quarantine is
// true after too many exits; delay is then the duration of the quarantine. An
// instance is not quarantined before its delays have grown to Settings.Max, so that
// a dependency that is away for a moment is only waited for.
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
	if !r.NoQuarantine && len(r.exits) >= r.Settings.QuarantineExits && bound(r.Settings, r.tries-1) >= r.Settings.Max {
		r.tries, r.exits = 0, nil
		r.quarantines++
		return r.Settings.QuarantineFor << min(r.quarantines-1, maxQuarantineDoublings), true
	}
	r.tries++
	return Delay(r.Settings, r.tries-1, random), false
}

// Tries returns the number of restarts since the last Reset or Forgive.
func (r *Restarts) Tries() int { return r.tries }

// Reset forgets all exits and quarantines.
func (r *Restarts) Reset() { r.tries, r.exits, r.quarantines = 0, nil, 0 }

// Forgive forgets the exits and quarantines of an instance that makes progress. The
// next restart still waits for the first delay: a process that ends after each batch
// is not restarted in a loop without pauses.
func (r *Restarts) Forgive() { r.tries, r.exits, r.quarantines = min(r.tries, 1), nil, 0 }

// Delay returns the delay before retry n: none for n = 0, then between half and all
// of a bound that doubles from Initial to Max.
func Delay(s settings.Restart, n int, random func() float64) time.Duration {
	half := bound(s, n) / 2
	return half + time.Duration(random()*float64(half))
}

// bound returns the longest delay before retry n.
func bound(s settings.Restart, n int) time.Duration {
	switch {
	case n <= 0:
		return 0
	case n <= 20:
		return min(s.Max, s.Initial<<(n-1))
	}
	return s.Max
}
