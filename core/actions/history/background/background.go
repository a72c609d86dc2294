// Package background runs long calculations: a bounded number at a time, in parts
// that several goroutines share, with their progress, until the server stops.
package background

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/fault"
)

// ErrStopping is the answer to what begins after Stop.
var ErrStopping = fault.New(fault.Unavailable, "stopping", "The server is stopping.").After(time.Second)

// Workers run calculations, a bounded number at a time. Those that an index answers
// do not wait for those that scan. It is safe for concurrent use.
type Workers struct {
	ctx                   context.Context // canceled by Stop
	cancel                context.CancelFunc
	running               sync.WaitGroup
	indexSlots, scanSlots chan struct{}
	partSlots             chan struct{} // of InParallel

	mu      sync.Mutex
	stopped bool
}

// New returns Workers that run this many scans at a time, and this many parts of
// all calculations together. 0 parts is scan.MaxParts.
func New(scans, parts int) *Workers {
	if parts == 0 {
		parts = scan.MaxParts()
	}
	w := &Workers{indexSlots: make(chan struct{}, 1), scanSlots: make(chan struct{}, scans), partSlots: make(chan struct{}, parts)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Start runs fn in a goroutine that Stop waits for. It returns false after Stop.
func (w *Workers) Start(fn func(ctx context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.running.Go(func() { fn(w.ctx) })
	return true
}

// Stop cancels the goroutines and waits for them until ctx ends.
func (w *Workers) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.cancel()
	done := make(chan struct{})
	go func() { w.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop background calculations: %w", ctx.Err())
	}
}

// WithSlot waits for a slot and calls fn. A panic of fn becomes its error. indexed
// is whether an index answers.
func (w *Workers) WithSlot(indexed bool, fn func() error) (err error) {
	slots := w.scanSlots
	if indexed {
		slots = w.indexSlots
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	return recovered(fn)
}

// recovered calls fn. A panic becomes its error.
func recovered(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("calculation panicked: %v", p)
		}
	}()
	return fn()
}
