package host

import (
	"context"
	"sync"
	"time"
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

// enter returns the open session, or nil. The caller is counted in before
// another session can be opened, and must leave it.
func (g *gate) enter() *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session != nil {
		g.session.busy.enter()
	}
	return g.session
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

// crowd counts the calls that are under way in a session.
type crowd struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed when n falls to 0; made by whoever waits
}

func (c *crowd) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// gone waits until nobody is left, and reports whether that came to pass before
// limit, or the end of ctx.
func (c *crowd) gone(ctx context.Context, limit time.Duration) bool {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return true
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	empty := c.empty
	c.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-empty:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
