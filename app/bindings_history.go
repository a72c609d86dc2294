package app

import (
	"context"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// historyBindings binds the history of actions.
var historyBindings = fx.Options(
	fx.Provide(
		func(p actionmatch.People, m actionmatch.Members, o match.Registry, ask func() actionmatch.Plugins) history.HistoryFacts {
			return history.HistoryFacts{People: p, Members: m, Operators: o, Plugins: ask}
		},
		route(func(h *history.HistoryHTTP) web.Routes { return h }),
	),
	fx.Invoke(func(p *persons.Service, e *events.Service) {
		p.OnMerge(func(ctx context.Context, projectID, _, _ int64) error { return e.PersonsChanged(ctx, projectID) })
		p.OnDelete(func(ctx context.Context, projectID, _ int64) error { return e.PersonsChanged(ctx, projectID) })
	}),
)
