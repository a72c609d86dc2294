package ingestion

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Pause is why and since when a sink is sent nothing.
type Pause struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// pauseGate is whether a sink is paused; it outlives the sink's deliveries.
type pauseGate struct {
	mu      sync.Mutex
	known   bool // what the database says
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

// wait returns when the sink is not paused; false when ctx ended first.
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

// Pause ends the delivery to a sink until it is resumed, also over restarts.
// What is on the way arrives; what comes after waits in the journal. It fails
// with NotFound when no such sink is configured.
func (d *Deliver) Pause(ctx context.Context, sink, reason string) error {
	return d.setPause(ctx, sink, &Pause{At: time.Now().UTC().Truncate(time.Microsecond), Reason: clipText(reason, maxMessage)})
}

// Resume goes on with a sink that was paused; one that was not is left as it
// is. It fails with NotFound when no such sink is configured.
func (d *Deliver) Resume(ctx context.Context, sink string) error {
	return d.setPause(ctx, sink, nil)
}

func (d *Deliver) setPause(ctx context.Context, sink string, p *Pause) error {
	d.mu.Lock()
	del := d.running[sink]
	d.mu.Unlock()
	if del == nil {
		return ErrNoSink
	}
	if old, known, _ := del.gate.get(); known && (old == nil) == (p == nil) {
		return nil
	}
	if err := d.store.setPause(ctx, sink, p); err != nil {
		return err
	}
	del.gate.set(p)
	return nil
}

// recall finds out whether the sink was paused before the restart, waiting for
// the database if need be; false when told to stop.
func (d *delivery) recall() bool {
	pause := backoff{least: d.cfg.Deliver.RetryMin, most: d.cfg.Deliver.RetryMax}
	for {
		if _, known, _ := d.gate.get(); known {
			return true
		}
		p, err := d.store.pause(d.running, d.sink.Name())
		if err == nil {
			d.gate.set(p)
			return true
		}
		d.tally.failed("waiting_for_database", err)
		if !sleep(d.running, pause.pause()) {
			return false
		}
	}
}

// hold pauses the sink because trying again has no end. It counts at once; the
// database is told as soon as it can be.
func (d *delivery) hold(cause error) {
	p := &Pause{At: time.Now().UTC().Truncate(time.Microsecond), Reason: clipText("tried often enough: "+cause.Error(), maxMessage)}
	d.gate.set(p)
	d.logger.Error("a sink is paused, for it was asked often enough; resume it to go on", zap.Error(cause))
	ctx, cancel := context.WithTimeout(d.living, d.cfg.Deliver.Timeout)
	defer cancel()
	if err := d.store.setPause(ctx, d.sink.Name(), p); err != nil {
		d.logger.Warn("a pause is forgotten with the next restart", zap.Error(err))
	}
}
