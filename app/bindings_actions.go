package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/trace"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// actionBindings says who answers the questions of actions.
var actionBindings = fx.Options(actions.Module, historyBindings, fx.Provide(
	// Actions ask: what happened lately, what is known of people and groups,
	// who is in which cohort, who wrote that.
	func(e *events.Service) actions.Recent { return recent{e} },
	func(p *persons.Service) actionmatch.People { return p },
	func(s decide.Source, lists *flags.Store, p *persons.Service, o match.Registry, ask func() actionmatch.Plugins) actionmatch.Members {
		return newMembers(s, lists, p, o, ask)
	},
	func(a *auth.Service) actions.Zones { return zones{a} },
	func(e actions.Recent, p actionmatch.People, m actionmatch.Members, o *operators.Operators, ask func() actionmatch.Plugins, log *zap.Logger) *actions.Previews {
		return actions.NewPreviews(actions.PreviewDependencies{Events: e, People: p, Members: m, Operators: o.Saving(), Plugins: ask, Log: log})
	},
	func(a *auth.Service, c actions.Calculations, s decide.Source, m actions.Refresher, o *operators.Operators, chat actions.Chat, log *zap.Logger) actions.Dependencies {
		return actions.Dependencies{Users: a, Calculations: c, CohortIDs: cohortIDs{s}, Chat: chat, Memory: m, Operators: o.Saving(), Log: log}
	},

	// Traces ask which actions an event is.
	newFitter,
	func(m *actions.Memory, f *fitter) trace.Actions { return &traced{m, f} },

	// What is served.
	route(func(h *actions.HTTP) web.Routes { return h }),
	route(func(h *actions.PreviewHTTP) web.Routes { return h }),
))

// traced tells traces which actions an event is.
type traced struct {
	memory *actions.Memory
	fitter *fitter
}

func (t *traced) Matching(ctx context.Context, ev *sdk.Event) ([]trace.ActionRef, error) {
	out := []trace.ActionRef{}
	project := t.memory.Project(ev.ProjectID)
	err := t.fitter.fitting(ctx, ev.ProjectID, project, project.All, []*sdk.Event{ev}, func(_ *sdk.Event, a *actions.Action) {
		out = append(out, trace.ActionRef{ID: a.ID, Name: a.Title()})
	})
	slices.SortFunc(out, func(a, b trace.ActionRef) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// zones lets actions read dates where a project is.
type zones struct{ auth *auth.Service }

func (z zones) Location(ctx context.Context, projectID int64) *time.Location {
	p, err := z.auth.Project(ctx, projectID)
	if err != nil {
		return time.UTC
	}
	return p.Location()
}

// cohortIDs lets actions check which cohorts there are.
type cohortIDs struct{ source decide.Source }

func (c cohortIDs) CohortIDs(ctx context.Context, projectID int64) ([]int64, error) {
	stored, err := c.source.Definitions(ctx, projectID)
	ids := make([]int64, len(stored.Cohorts))
	for i := range stored.Cohorts {
		ids[i] = stored.Cohorts[i].ID
	}
	return ids, err
}

// recent lets actions look at the newest events.
type recent struct{ events *events.Service }

func (r recent) Recent(ctx context.Context, projectID int64, event, distinctID string, limit int) ([]sdk.Event, error) {
	found, _, err := r.events.List(ctx, projectID, events.Filter{Event: event, DistinctID: distinctID}, limit)
	return found, err
}
