package scan

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/guidonhq/guidon/core/db/pools"
)

// placeKey finds the place of a scan in its context.
type placeKey struct{}

// place is the place of a running scan. Goroutines of one scan may share it.
type place struct {
	limiter *Limiter
	key     queueKey
	since   atomic.Int64 // when the scan got the place
	lost    atomic.Bool  // the scan lost its place in Yield and failed to get another
}

func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

func (p *place) restart() { p.since.Store(time.Now().UnixNano()) }

func (p *place) release() {
	if !p.lost.Swap(true) {
		p.limiter.release(p.key)
	}
}

const (
	// workBeforePause is how long a scan computes before it sleeps: the processor
	// looks for network traffic meanwhile.
	workBeforePause = time.Millisecond
	// pause is how long it sleeps, and busyPause while requests of clients are being
	// answered.
	pause     = 100 * time.Microsecond
	busyPause = time.Millisecond
	// workBeforeYield is how long a scan keeps its place while others wait.
	workBeforeYield = 250 * time.Millisecond
)

// Pause sleeps for 0.1 ms, or for 1 ms while requests of clients are being answered.
// It is for scans that measure by themselves how long they have worked.
func Pause() {
	if pools.InFlight() > 0 {
		time.Sleep(busyPause)
		return
	}
	time.Sleep(pause)
}

// Pacer sleeps for one goroutine of a scan. A nil Pacer does nothing.
type Pacer struct{ sleptAt time.Time }

// PacerOf returns a pacer for a goroutine of the scan that ctx belongs to, nil
// without one. Goroutines of one scan have a pacer each.
func PacerOf(ctx context.Context) *Pacer {
	if placeOf(ctx) == nil {
		return nil
	}
	return &Pacer{time.Now()}
}

// Pace sleeps briefly if the goroutine has worked long enough since it slept last.
// Call it after each row or each few of them; it may be called while a statement
// runs.
func (p *Pacer) Pace() {
	if p == nil || time.Since(p.sleptAt) < workBeforePause {
		return
	}
	Pause()
	p.sleptAt = time.Now()
}

// Yield is called between two steps of a scan, while it holds neither a connection
// nor a lock. If other scans wait and this one has run for a quarter of a second,
// it gives its place away and waits for its next turn. It fails with the error of
// ctx only. Without a scan it does nothing. A scan of several goroutines must not
// call it.
func Yield(ctx context.Context) error {
	p := placeOf(ctx)
	if p == nil || !p.shouldYield() {
		return nil
	}
	p.limiter.release(p.key)
	waited, err := p.limiter.acquire(ctx, p.key, false)
	if err != nil {
		p.lost.Store(true)
		return err
	}
	addWait(ctx, waited)
	p.restart()
	return nil
}
