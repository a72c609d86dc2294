package history

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

var errStopping = fault.New(fault.Unavailable, "stopping", "The server is stopping.").After(time.Second)

// workers run counts and searches in the background, a bounded number at a time.
// Plans that an index answers do not wait for those that read events.
type workers struct {
	ctx                   context.Context // canceled by stop
	cancel                context.CancelFunc
	running               sync.WaitGroup
	indexSlots, scanSlots chan struct{}

	mu      sync.Mutex
	stopped bool
}

func newWorkers(parallelScans int) *workers {
	w := &workers{indexSlots: make(chan struct{}, 1), scanSlots: make(chan struct{}, parallelScans)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// start runs fn in a goroutine that stop waits for. It returns false after stop.
func (w *workers) start(fn func(ctx context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.running.Go(func() { fn(w.ctx) })
	return true
}

// stop cancels the goroutines and waits for them until ctx ends.
func (w *workers) stop(ctx context.Context) error {
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
		return fmt.Errorf("stop counting histories: %w", ctx.Err())
	}
}

// withSlot waits for before, which may be nil, and for a slot, and calls fn. A
// panic of fn becomes its error.
func (w *workers) withSlot(before *run, p *plan, fn func() error) (err error) {
	if before != nil {
		<-before.done
	}
	slots := w.scanSlots
	if p.exact {
		slots = w.indexSlots
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("counting panicked: %v", p)
		}
	}()
	return fn()
}
