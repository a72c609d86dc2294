package host

import (
	"context"
	"sync"
)

// gate lets callers through to the session of the moment. Calls after a death
// would fail in microseconds and make their callers spin, so the first failure
// closes the gate, and only the supervisor opens it again.
type gate struct {
	mu      sync.Mutex
	session *session
	opened  chan struct{} // closed while the gate is open
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

// open lets callers through to s.
func (g *gate) open(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil {
		close(g.opened)
	}
	g.session = s
}

// close stops callers, unless another session is open than s. A nil s means
// whichever is open. It reports whether the gate was open.
func (g *gate) close(s *session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil || s != nil && g.session != s {
		return false
	}
	g.session = nil
	g.opened = make(chan struct{})
	return true
}

// current returns the open session, or nil.
func (g *gate) current() *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session
}

// wait returns when the gate is open or ctx ends.
func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		open, opened := g.session != nil, g.opened
		g.mu.Unlock()
		if open {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
