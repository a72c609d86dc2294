package delivery

import (
	"context"
	"maps"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
)

// Pause is why and since when a sink is paused.
type Pause = pause.Pause

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
	return d.pauses.Change(ctx, sink, del.sender.gate, p)
}

// pauseGates returns the gates of all sinks.
func (d *Service) pauseGates() map[string]*pause.Gate {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.gates)
}
