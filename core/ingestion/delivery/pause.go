package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
)

// Pause is why and since when a sink is paused.
type Pause struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// pauseGate holds whether a sink is paused. It outlives the sink's deliveries.
type pauseGate struct {
	mu      sync.Mutex
	known   bool // the database was read
	pause   *Pause
	changed chan struct{} // closed at a change
}

func newPauseGate() *pauseGate { return &pauseGate{changed: make(chan struct{})} }

func (g *pauseGate) set(p *Pause) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.pause = true, p
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *pauseGate) get() (p *Pause, known bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pause, g.known, g.changed
}

func (g *pauseGate) paused() bool {
	p, _, _ := g.get()
	return p != nil
}

// wait returns when the sink is not paused; false when ctx ends first.
func (g *pauseGate) wait(ctx context.Context) bool {
	for {
		p, _, changed := g.get()
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

// Pause pauses the delivery to a sink until Resume, also across restarts. Batches
// in flight arrive; later events wait in the journal. It fails with NotFound when
// no such sink is configured.
func (d *Service) Pause(ctx context.Context, sink, reason string) error {
	return d.setPause(ctx, sink, &Pause{At: time.Now().UTC().Truncate(time.Microsecond), Reason: deadletter.Clean(reason)})
}

// Resume ends a pause. A sink that is not paused stays unchanged. It fails with
// NotFound when no such sink is configured.
func (d *Service) Resume(ctx context.Context, sink string) error {
	return d.setPause(ctx, sink, nil)
}

func (d *Service) setPause(ctx context.Context, sink string, p *Pause) error {
	del := d.find(sink)
	if del == nil {
		return ErrNoSink
	}
	gate := del.sender.gate
	if old, known, _ := gate.get(); known && (old == nil) == (p == nil) {
		return nil
	}
	if err := d.pauses.save(ctx, sink, p); err != nil {
		return err
	}
	gate.set(p)
	return nil
}
