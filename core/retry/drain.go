package retry

import (
	"context"
	"sync"
	"time"
)

type drainKey struct{}

// drainClock is the drain time that several services share. It runs from the
// first stop.
type drainClock struct {
	d        time.Duration
	start    sync.Once
	deadline time.Time
}

// WithDrain returns a context for stopping several services one after the
// other. Together they drain for at most d, counted from the first stop; a
// service that is stopped later is killed after its grace (see Drain). ctx
// should end much later than d: it is the time for what cannot be killed.
func WithDrain(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, drainKey{}, &drainClock{d: d})
}

// Drain returns a context that ends with the drain time of ctx, but not before
// grace has passed. Without WithDrain it ends with ctx.
func Drain(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	c, ok := ctx.Value(drainKey{}).(*drainClock)
	if !ok {
		return context.WithCancel(ctx)
	}
	now := time.Now()
	c.start.Do(func() { c.deadline = now.Add(c.d) })
	end := c.deadline
	if least := now.Add(grace); end.Before(least) {
		end = least
	}
	return context.WithDeadline(context.WithValue(ctx, drainKey{}, nil), end)
}
