package app

import (
	"context"

	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// stages is the order in which the worker sees an event through: who it is
// comes first, because the store keeps the person with the event; then what
// flags learn from being asked for, and which names there are.
func stages(p *persons.Service, e *events.Service, f *flags.CallStage, d *definitions.Service) []ingestion.Stage {
	return []ingestion.Stage{personStage{p}, eventStage{e}, f, definitionStage{d}}
}

type personStage struct{ persons *persons.Service }

func (personStage) Name() string { return "persons" }

func (s personStage) Process(ctx context.Context, batch []*sdk.Event) error {
	warnings, err := s.persons.Process(ctx, batch)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		ingestion.Warn(ctx, ingestion.Warning{ProjectID: w.ProjectID, Type: w.Type, EventUUID: w.EventUUID, Details: w.Details})
	}
	return nil
}

type eventStage struct{ events *events.Service }

func (eventStage) Name() string { return "events" }

func (s eventStage) Process(ctx context.Context, batch []*sdk.Event) error {
	_, err := s.events.Process(ctx, batch)
	return err
}
