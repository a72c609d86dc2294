package app

import (
	"context"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// Definitions ask: which group types are there, what is copied from an event
// to its person, who is that.
var definitionBindings = fx.Options(
	fx.Provide(
		func(p *persons.Service, a *auth.Service) definitions.Deps {
			return definitions.Deps{Groups: p, Automatic: persons.CopiedPropertyNames, Users: a}
		},
		route(func(h *definitions.HTTP) web.Routes { return h }),
	),
	fx.Invoke(func(p *persons.Service, d *definitions.Service) { p.Groups.OnTypesChanged(d.ForgetGroups) }),
)

type definitionStage struct{ definitions *definitions.Service }

func (definitionStage) Name() string { return "definitions" }

func (s definitionStage) Process(ctx context.Context, batch []*sdk.Event) error {
	warnings, err := s.definitions.Process(ctx, batch)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		ingestion.Warn(ctx, ingestion.Warning{ProjectID: w.ProjectID, Type: w.Type, EventUUID: w.EventUUID, Details: w.Details})
	}
	return nil
}
