package background

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/guidonhq/guidon/core/db/scan"
)

// InParallel calls fn for each part, the first ones first, a bounded number at a
// time. The scans of all parts share one place. It returns the first error, which
// cancels the context of the others.
func InParallel[T any](ctx context.Context, w *Workers, parts []T, fn func(ctx context.Context, part T) error) error {
	group, ctx := errgroup.WithContext(scan.Share(ctx))
	group.SetLimit(cap(w.partSlots))
	for _, part := range parts {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			select {
			case w.partSlots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-w.partSlots }()
			return recovered(func() error { return fn(ctx, part) })
		})
	}
	return group.Wait()
}

// Progress is how far a calculation is.
type Progress struct {
	// Done is the share of the work that is done, from 0 to 1.
	Done float64
	// Remaining is an estimate of the time that the rest takes, 0 while there is
	// none.
	Remaining time.Duration
}

// Counter counts the parts of a calculation. The zero value has none. It is safe for concurrent use.
type Counter struct {
	total, done atomic.Int64
	began       atomic.Int64 // unix nanoseconds, 0 before the beginning
}

// Expect adds parts; the first call is the beginning.
func (p *Counter) Expect(parts int) {
	p.began.CompareAndSwap(0, time.Now().UnixNano())
	p.total.Add(int64(parts))
}

// Step records that a part is done.
func (p *Counter) Step() { p.done.Add(1) }

// State returns the progress.
func (p *Counter) State() Progress {
	total, done := p.total.Load(), p.done.Load()
	if done == 0 || total == 0 {
		return Progress{}
	}
	s := Progress{Done: min(float64(done)/float64(total), 1)}
	elapsed := time.Since(time.Unix(0, p.began.Load()))
	s.Remaining = time.Duration(float64(elapsed) * (1 - s.Done) / s.Done)
	return s
}
