package pipeline

import (
	"context"

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

// EventStage writes events to the event store.
func EventStage(e *events.Service) Stage {
	return stage{"events", func(ctx context.Context, batch []*sdk.Event) error {
		_, err := e.Process(ctx, batch)
		return err
	}}
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
