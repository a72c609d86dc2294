package app

import (
	"context"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// actionPorts says who answers the questions of actions.
var actionPorts = fx.Provide(
	// Actions ask: what happened lately, what is known of people and groups,
	// who is in which cohort.
	func(e *events.Service) actions.Recent { return recent{e} },
	func(p *persons.Service) actions.People { return p },
	func(s flags.Source, lists *flags.Store, p *persons.Service, o match.Registry) actions.Members {
		return newMembers(s, lists, p, o)
	},
	func(e actions.Recent, p actions.People, m actions.Members, o match.Registry, log *zap.Logger) *actions.Previews {
		return actions.NewPreviews(actions.PreviewDependencies{Events: e, People: p, Members: m, Operators: o, Log: log})
	},

	// What is served.
	actions.NewPreviewHTTP,
	route(func(h *actions.PreviewHTTP) web.Routes { return h }),
)

// recent lets actions look at the newest events.
type recent struct{ events *events.Service }

func (r recent) Recent(ctx context.Context, projectID int64, event, distinctID string, limit int) ([]sdk.Event, error) {
	found, _, err := r.events.List(ctx, projectID, events.Filter{Event: event, DistinctID: distinctID}, limit)
	return found, err
}
