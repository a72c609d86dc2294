// Package pause keeps which sinks are paused, in memory and in the database. A pause
// holds on all nodes that share the database: Follow reads it every second.
package pause

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Pause is why and since when a sink is paused.
type Pause struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// Gate holds whether a sink is paused. It outlives the sink's deliveries. Its methods
// are safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	known   bool // the database was read
	pause   *Pause
	unsaved bool          // the database does not have the pause
	version uint64        // of the pause, counts changes
	changed chan struct{} // closed at a change
}

// NewGate returns a gate of a sink whose pause is not known yet. The sink is not
// paused.
func NewGate() *Gate { return &Gate{changed: make(chan struct{})} }

// Set sets the pause that the database has, nil for none.
func (g *Gate) Set(p *Pause) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(p)
}

// Hold sets a pause that the database does not have.
func (g *Gate) Hold(p *Pause) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(p)
	g.unsaved = true
}

func (g *Gate) set(p *Pause) {
	g.known, g.pause, g.unsaved = true, p, false
	g.version++
	close(g.changed)
	g.changed = make(chan struct{})
}

// state is the pause at one moment.
type state struct {
	pause          *Pause
	known, unsaved bool
	version        uint64
}

func (g *Gate) state() state {
	g.mu.Lock()
	defer g.mu.Unlock()
	return state{g.pause, g.known, g.unsaved, g.version}
}

// setSince sets the pause unless it has changed since a state.
func (g *Gate) setSince(s state, p *Pause) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.version == s.version {
		g.set(p)
	}
}

// Get returns the pause, nil for none, whether it was set before, and a channel that
// is closed at the next change.
func (g *Gate) Get() (p *Pause, known bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pause, g.known, g.changed
}

// Paused reports whether the sink is paused.
func (g *Gate) Paused() bool {
	p, _, _ := g.Get()
	return p != nil
}

// Wait returns when the sink is not paused; false when ctx ends first.
func (g *Gate) Wait(ctx context.Context) bool {
	for {
		p, _, changed := g.Get()
		if p == nil {
			return ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Gates are the gates of all sinks. Its methods are safe for concurrent use.
type Gates struct {
	mu    sync.Mutex
	gates map[string]*Gate
}

// Of returns the gate of a sink, a new one at the first call.
func (g *Gates) Of(sink string) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := g.gates[sink]
	if gate == nil {
		gate = NewGate()
		if g.gates == nil {
			g.gates = map[string]*Gate{}
		}
		g.gates[sink] = gate
	}
	return gate
}

// All returns all gates by sink.
func (g *Gates) All() map[string]*Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.gates)
}
