package pipeline

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// stage is a Stage made of a function.
type stage struct {
	name    string
	process func(ctx context.Context, batch []*sdk.Event) error
}

func (s stage) Name() string                                          { return s.name }
func (s stage) Process(ctx context.Context, batch []*sdk.Event) error { return s.process(ctx, batch) }

// PersonStage finds the person of each event and applies its updates.
func PersonStage(p *persons.Service) Stage {
	return stage{"persons", func(ctx context.Context, batch []*sdk.Event) error {
		warnings, err := p.Process(ctx, attached(ctx, batch))
		if err != nil {
			return err
		}
		for _, w := range warnings {
			warning.Add(ctx, warning.Warning{ProjectID: w.ProjectID, Type: w.Type, EventUUID: w.EventUUID, Details: w.Details})
		}
		return nil
	}}
}

// Retention knows how long projects keep events. retention.Service implements it.
type Retention interface {
	// TooOld returns a function that reports whether an event is older than its
	// project keeps it, and that age; nil if every event is kept for ever.
	TooOld() func(ev *sdk.Event) (keep time.Duration, old bool)
}

// eventStage is the stage that gives rows their numbers.
type eventStage struct{ stage }

// EventStage writes events to the event store, except those that are too old. Other
// stages process these, too. r may be nil.
func EventStage(e *events.Service, r Retention) Stage {
	return eventStage{stage{"events", func(ctx context.Context, batch []*sdk.Event) error {
		if r != nil {
			batch = withoutOld(ctx, batch, r.TooOld())
		}
		_, err := e.Process(ctx, batch)
		return err
	}}}
}

// withoutOld returns the events that are not too old, and warns of the others. tooOld
// may be nil.
func withoutOld(ctx context.Context, batch []*sdk.Event, tooOld func(ev *sdk.Event) (time.Duration, bool)) []*sdk.Event {
	if tooOld == nil {
		return batch
	}
	kept := make([]*sdk.Event, 0, len(batch))
	for _, ev := range batch {
		keep, old := tooOld(ev)
		if !old {
			kept = append(kept, ev)
			continue
		}
		warning.Add(ctx, warning.Warning{
			ProjectID: ev.ProjectID, Type: "event_too_old", Key: ev.Name, Dropped: true, EventUUID: ev.UUID,
			Details: map[string]any{
				"event": ev.Name, "distinctId": ev.DistinctID, "timestamp": ev.Timestamp.UTC().Format(time.RFC3339),
				"retention_hours": keep.Hours(),
			},
		})
	}
	return kept
}

// DefinitionStage records the names of events and properties.
func DefinitionStage(d *definitions.Service) Stage {
	return stage{"definitions", func(ctx context.Context, batch []*sdk.Event) error {
		warnings, err := d.Process(ctx, batch)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			warning.Add(ctx, warning.Warning{ProjectID: w.ProjectID, Type: w.Type, EventUUID: w.EventUUID, Details: w.Details})
		}
		return nil
	}}
}
