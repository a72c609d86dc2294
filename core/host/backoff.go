package host

import (
	"github.com/guidonhq/guidon/core/host/settings"
	"math/rand/v2"
	"time"
)

// backoff decides what follows an exit. It is pure: time and randomness come
// from the caller.
type backoff struct {
	cfg   settings.Restart
	tries int
	exits []time.Time
	// patient is never a quarantine: the process is not ours.
	patient bool
}

// next is called at each exit with how long the instance had been ready. It
// returns how long to wait before the next start, or that the instance has died
// too often.
func (b *backoff) next(now time.Time, ready time.Duration, random func() float64) (delay time.Duration, quarantine bool) {
	if ready >= b.cfg.ResetAfter {
		b.reset()
	}
	recent := b.exits[:0]
	for _, at := range b.exits {
		if since := now.Sub(at); since >= 0 && since < b.cfg.QuarantineWindow { // not from before the clock was put back
			recent = append(recent, at)
		}
	}
	b.exits = append(recent, now)
	if len(b.exits) >= b.cfg.QuarantineExits && !b.patient {
		return 0, true
	}
	b.tries++
	return curve(b.cfg, b.tries-1, random), false
}

// reset forgets the past: after a long good time, or when somebody says so.
func (b *backoff) reset() { b.tries, b.exits = 0, nil }

// curve is the delay before try n: nothing for the first, then a random part of
// a doubling bound.
func curve(cfg settings.Restart, n int, random func() float64) time.Duration {
	if n <= 0 {
		return 0
	}
	bound := cfg.Max
	if n <= 20 {
		bound = min(cfg.Max, cfg.Initial<<(n-1))
	}
	return time.Duration(random() * float64(bound))
}

// random is the jitter of the running host.
func random() float64 { return rand.Float64() }
