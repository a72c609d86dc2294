package scan

import (
	"context"
	"sync/atomic"
	"time"
)

// Waits adds up how long scans wait for their places. It is safe for concurrent use.
type Waits struct{ sum atomic.Int64 }

type waitsKey struct{}

// WithWaits returns a context whose scans add their waits to the Waits. A caller that
// bounds the time of its work leaves them out.
func WithWaits(ctx context.Context) (context.Context, *Waits) {
	w := &Waits{}
	return context.WithValue(ctx, waitsKey{}, w), w
}

// Total returns the sum of the waits that have ended.
func (w *Waits) Total() time.Duration { return time.Duration(w.sum.Load()) }

func addWait(ctx context.Context, d time.Duration) {
	if w, ok := ctx.Value(waitsKey{}).(*Waits); ok && d > 0 {
		w.sum.Add(int64(d))
	}
}
