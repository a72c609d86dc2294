package delivery

import (
	"context"
	"slices"
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
	if !slices.Contains(d.Names(), sink) {
		return ErrNoSink
	}
	return d.pauses.Change(ctx, sink, d.gates.Of(sink), p)
}

// Paused returns the pause of a sink, nil if it is not paused as far as this node knows.
func (d *Service) Paused(sink string) *Pause {
	p, _, _ := d.gates.Of(sink).Get()
	return p
}

// Names returns the names of the configured sinks.
func (d *Service) Names() (names []string) {
	for _, s := range d.sinks.Sinks() {
		names = append(names, s.Name())
	}
	return names
}
