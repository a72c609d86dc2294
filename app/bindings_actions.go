package app

import (
	"context"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/ingestion/trace"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// actionBindings binds actions to cohorts, plugins, traces and the routes.
var actionBindings = fx.Options(local(actions.Module), fx.Provide(
	func(m *cohorts.Members) actionmatch.Members { return m },
	func(p *persons.Service, m actionmatch.Members, o match.Registry, ask func() actionmatch.Plugins, over *actions.OverBudget) actionmatch.Sources {
		return actionmatch.Sources{Persons: p, Members: m, Operators: o, Plugins: ask, OverBudget: over.Report}
	},
	func(a *auth.Service) actions.Projects { return a },
	func(e actions.Events, sources actionmatch.Sources, o *operators.Operators, log *zap.Logger) *actions.Previews {
		sources.Operators = o.ForSave()
		return actions.NewPreviews(actions.PreviewDependencies{Events: e, Sources: sources, Log: log})
	},
	func(a *auth.Service, c actions.Calculations, s *cohorts.Store, m actions.Refresher, o *operators.Operators, chat actions.Chat, log *zap.Logger) actions.Dependencies {
		return actions.Dependencies{Users: a, Projects: a, Calculations: c, CohortIDs: s, Chat: chat, Snapshots: m, Operators: o.ForSave(), Log: log}
	},
	func(m *actions.EventMatcher) trace.Actions { return traceActions{m} },
	route(func(h *actions.HTTP) web.Routes { return h }),
	route(func(h *actions.PreviewHTTP) web.Routes { return h }),
	route(func(h *actions.SeriesHTTP) web.Routes { return h }),
	route(func(h *history.HTTP) web.Routes { return h }),
), fx.Invoke(func(h *history.Service, r *revision.Store, c *cohorts.Service, a *actions.Store) {
	h.FollowCohorts(r)
	c.UsedBy("action", a.UsingCohort)
}))

// traceActions shows the actions of an event in its trace.
type traceActions struct{ matcher *actions.EventMatcher }

func (t traceActions) Matching(ctx context.Context, ev *sdk.Event) ([]trace.ActionRef, error) {
	found, err := t.matcher.MatchEvent(ctx, ev)
	out := make([]trace.ActionRef, len(found))
	for i, a := range found {
		out[i] = trace.ActionRef{ID: a.ID, Name: a.Title()}
	}
	return out, err
}
