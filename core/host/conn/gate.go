package conn

import (
	"context"
	"sync"
	"time"
)

// Gate passes callers to the current session of an instance. Calls after an exit
// would fail within microseconds and make callers spin, so the first failed call
// closes the gate and only the supervisor opens it again. Its methods are safe for
// concurrent use.
type Gate struct {
	mu      sync.Mutex
	session *Session
	opened  chan struct{} // closed while the gate is open
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{opened: make(chan struct{})} }

// Open passes callers to s from now on.
func (g *Gate) Open(s *Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil {
		close(g.opened)
	}
	g.session = s
}

// Close closes the gate, unless it is open for another session than s. A nil s means
// any session. It reports whether it closed the gate.
func (g *Gate) Close(s *Session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session == nil || s != nil && g.session != s {
		return false
	}
	g.session = nil
	g.opened = make(chan struct{})
	return true
}

// Enter returns the current session, or nil. The session counts the call before
// another session can be opened; the caller ends it with InFlight.Done.
func (g *Gate) Enter() *Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session != nil {
		g.session.InFlight.Add()
	}
	return g.session
}

// Current returns the current session, or nil.
func (g *Gate) Current() *Session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.session
}

// Wait returns when the gate is open or ctx ends.
func (g *Gate) Wait(ctx context.Context) error {
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

// InFlight counts the running calls of a session. The zero value is idle. Its
// methods are safe for concurrent use.
type InFlight struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n falls to 0; made by WaitIdle
}

// Add counts a call.
func (c *InFlight) Add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// Done ends a call.
func (c *InFlight) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// WaitIdle waits until no call runs, for at most limit and until ctx ends. It reports
// whether the session is idle.
func (c *InFlight) WaitIdle(ctx context.Context, limit time.Duration) bool {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return true
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
