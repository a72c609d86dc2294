package scan

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// MaxParts is how many parts run at once in places that parts share: one less than the
// processors of the server, between one and eight. A processor is left to requests.
func MaxParts() int { return max(1, min(8, runtime.GOMAXPROCS(0)-1)) }

// Share returns a context whose scans in the background are parts of one scan: they
// share a place while any of them runs, MaxParts at a time. When other scans wait and
// the place was held for a quarter of a second, no part joins it any more; the next part
// waits until the running ones have ended and for its turn then. In the context of a scan
// it has no effect.
func Share(ctx context.Context) context.Context {
	if placeOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, shareKey{}, &share{entry: make(chan struct{}, 1)})
}

type shareKey struct{}

func shareOf(ctx context.Context) *share {
	s, _ := ctx.Value(shareKey{}).(*share)
	return s
}

// share is the place of the parts of a scan. Parts begin one after the other.
type share struct {
	entry chan struct{} // held by the part that begins

	mu    sync.Mutex
	place *place        // nil without a running part
	parts int           // that run; one less have a token of the limiter
	idle  chan struct{} // closed when the last part ends
}

func (s *share) begin(ctx context.Context, l *Limiter, key queueKey) (context.Context, func(), error) {
	select {
	case s.entry <- struct{}{}:
		defer func() { <-s.entry }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if p, err := s.join(ctx, l); p != nil || err != nil {
		return withPlace(ctx, p), s.leave, err
	}
	p, err := l.beginPlace(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.place, s.parts, s.idle = p, 1, make(chan struct{})
	s.mu.Unlock()
	return withPlace(ctx, p), s.leave, nil
}

// join adds a part to the running ones and returns their place. It returns nil once no
// part runs.
func (s *share) join(ctx context.Context, l *Limiter) (*place, error) {
	s.mu.Lock()
	p, idle := s.place, s.idle
	s.mu.Unlock()
	if p == nil {
		return nil, nil
	}
	tokens := l.parts
	if p.shouldYield() {
		tokens = nil // wait until the parts have ended
	}
	select {
	case tokens <- struct{}{}:
	case <-idle:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts == 0 {
		<-l.parts
		return nil, nil
	}
	s.parts++
	return p, nil
}

func (s *share) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts--; s.parts > 0 {
		<-s.place.limiter.parts
		return
	}
	s.place.release()
	s.place = nil
	close(s.idle)
}

// shouldYield reports whether the place was held long enough while other scans wait.
func (p *place) shouldYield() bool {
	return time.Now().UnixNano()-p.since.Load() >= int64(workBeforeYield) && p.limiter.othersWait()
}

func withPlace(ctx context.Context, p *place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}
