package app

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags/calls"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/retention"
	"github.com/guidonhq/guidon/core/servermetrics"
)

// stages returns the stages of the pipeline in their order. Persons come first,
// because the event store keeps the person with the event; then flag calls and
// definitions.
func stages(p *persons.Service, e *events.Service, r *retention.Service, f *calls.Stage, d *definitions.Service) []pipeline.Stage {
	return []pipeline.Stage{pipeline.PersonStage(p), pipeline.EventStage(e, r), f, pipeline.DefinitionStage(d)}
}

// storedData returns the figures of the stored data that metrics show.
func storedData(a *auth.Service, p *persons.Service, e *events.Service) servermetrics.Source {
	return servermetrics.Source{Persons: p.EstimateCount, OldestEvent: func(ctx context.Context) (time.Time, error) {
		projects, err := a.Projects(ctx, "")
		if err != nil {
			return time.Time{}, err
		}
		var oldest time.Time
		for _, p := range projects {
			first, err := e.FirstEvent(ctx, p.ID)
			if err != nil {
				return time.Time{}, err
			}
			if !first.IsZero() && (oldest.IsZero() || first.Before(oldest)) {
				oldest = first
			}
		}
		return oldest, nil
	}}
}
