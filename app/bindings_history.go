package app

import (
	"context"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// historyBindings binds the history of actions to events and persons.
var historyBindings = fx.Options(
	fx.Provide(
		func(e *events.Service) actions.EventHistory { return e },
		func(p *persons.Service) actions.Persons { return p },
		func(p actionmatch.People, m actionmatch.Members, o match.Registry, ask func() actionmatch.Plugins) actions.HistoryFacts {
			return actions.HistoryFacts{People: p, Members: m, Operators: o, Plugins: ask}
		},
		route(func(h *actions.HistoryHTTP) web.Routes { return h }),
	),
	fx.Invoke(func(p *persons.Service, e *events.Service) {
		p.OnMerge(func(ctx context.Context, projectID, _, _ int64) error { return e.PersonsChanged(ctx, projectID) })
		p.OnDelete(func(ctx context.Context, projectID, _ int64) error { return e.PersonsChanged(ctx, projectID) })
	}),
)
