package app

import (
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags/calls"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/persons"
)

// stages returns the stages of the pipeline in their order. Persons come first,
// because the event store keeps the person with the event; then flag calls and
// definitions.
func stages(p *persons.Service, e *events.Service, f *calls.Stage, d *definitions.Service) []pipeline.Stage {
	return []pipeline.Stage{pipeline.PersonStage(p), pipeline.EventStage(e), f, pipeline.DefinitionStage(d)}
}
