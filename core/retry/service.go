package retry

import (
	"context"
	"sync"
	"time"
)

// Service runs the goroutines of a component and stops them in two phases. The
// first phase ends the drain context: no new work starts. The second phase ends
// the kill context: calls that are under way are given up. The zero value is
// ready to use.
//
//	func (w *Worker) Start(context.Context) error {
//		w.service.Start()
//		w.service.Go(w.run)
//		return nil
//	}
//
//	func (w *Worker) run(drainCtx, killCtx context.Context) {
//		for drainCtx.Err() == nil {
//			batch := w.next(drainCtx)
//			w.process(killCtx, batch)
//		}
//	}
//
//	func (w *Worker) Stop(ctx context.Context) error { return w.service.Stop(ctx) }
//
// Its methods are safe for concurrent use.
type Service struct {
	mu       sync.Mutex
	drainCtx context.Context // nil before Start
	killCtx  context.Context
	drain    context.CancelFunc
	kill     context.CancelFunc
	running  sync.WaitGroup
}

// Start makes the contexts of the service. Starting again has no effect.
func (s *Service) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drainCtx != nil {
		return
	}
	s.killCtx, s.kill = context.WithCancel(context.Background())
	s.drainCtx, s.drain = context.WithCancel(s.killCtx)
}

// Go runs fn in a goroutine that Stop waits for. It returns false, without
// running fn, before Start and once Stop was called.
func (s *Service) Go(fn func(drainCtx, killCtx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drainCtx == nil || s.drainCtx.Err() != nil {
		return false
	}
	drainCtx, killCtx := s.drainCtx, s.killCtx
	s.running.Go(func() { fn(drainCtx, killCtx) })
	return true
}

// Every runs fn with the drain context each interval d until Stop, at the times of
// SleepAligned. The first run is after about d. It returns as Go does.
func (s *Service) Every(d time.Duration, fn func(ctx context.Context)) bool {
	return s.EveryOr(d, nil, fn)
}

// wakePause is the least time between a run that was woken and the next one.
const wakePause = 10 * time.Millisecond

// EveryOr is Every that also runs fn when wake receives. Wake-ups that follow each
// other keep fn busy for at most half of the time. A nil wake makes it Every.
func (s *Service) EveryOr(d time.Duration, wake <-chan struct{}, fn func(ctx context.Context)) bool {
	return s.Go(func(drainCtx, _ context.Context) {
		for {
			woken, ok := sleepAlignedOr(drainCtx, d, wake)
			if !ok {
				return
			}
			begin := time.Now()
			fn(drainCtx)
			if woken {
				Sleep(drainCtx, min(max(wakePause, time.Since(begin)), d))
			}
		}
	})
}

// stopGrace is the least time that Stop leaves to goroutines that drain.
const stopGrace = time.Second

// Stop ends the drain context and waits for the goroutines; when ctx or its
// drain time (WithDrain) ends first it ends the kill context, too, and waits on. So nothing of the service runs
// any more when Stop returns. Without Start, and a second time, it returns
// without effect. The result is always nil; it suits interfaces of components
// that stop.
func (s *Service) Stop(ctx context.Context) error {
	s.mu.Lock()
	drain, kill := s.drain, s.kill
	s.mu.Unlock()
	if drain == nil {
		return nil
	}
	ctx, release := Drain(ctx, stopGrace)
	defer release()
	drain()
	finished := make(chan struct{})
	go func() {
		s.running.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		kill()
		<-finished
	}
	kill()
	return nil
}
