package limit

import "sync/atomic"

// Adjustable is a Limiter whose rate may change while it is in use. Its methods are
// safe for concurrent use.
type Adjustable[K comparable] struct {
	max     int
	current atomic.Pointer[adjusted[K]]
}

type adjusted[K comparable] struct {
	rate    Rate
	limiter *Limiter[K] // nil: no limit
}

// NewAdjustable returns a limiter with at most maxKeys keys.
func NewAdjustable[K comparable](r Rate, maxKeys int) *Adjustable[K] {
	a := &Adjustable[K]{max: maxKeys}
	a.current.Store(&adjusted[K]{r, New[K](r, maxKeys)})
	return a
}

// SetRate changes the rate. With another rate, every key has a full burst again.
func (a *Adjustable[K]) SetRate(r Rate) {
	if a.current.Load().rate != r {
		a.current.Store(&adjusted[K]{r, New[K](r, a.max)})
	}
}

// Take is Limiter.Take with the rate of now.
func (a *Adjustable[K]) Take(key K) error { return a.now().Take(key) }

// now returns the limiter of now, nil without a limit.
func (a *Adjustable[K]) now() *Limiter[K] { return a.current.Load().limiter }
