package app

import (
	"context"
	"time"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// historyPorts says who answers for the past of actions: the event store what
// happened, persons who did it. Persons tell the event store when the people
// of events have become others.
var historyPorts = fx.Options(
	fx.Provide(
		func(e *events.Service) actions.Past { return past{e} },
		func(p *persons.Service) actions.Gallery { return gallery{p} },
		func(p actions.People, m actions.Members, o match.Registry, ask func() actions.Plugins) actions.HistoryFacts {
			return actions.HistoryFacts{People: p, Members: m, Operators: o, Plugins: ask}
		},
		route(func(h *actions.HistoryHTTP) web.Routes { return h }),
	),
	fx.Invoke(func(p *persons.Service, e *events.Service) {
		p.OnMerge(func(ctx context.Context, projectID, _, _ int64) error { return e.PeopleMoved(ctx, projectID) })
		p.OnDelete(func(ctx context.Context, projectID, _ int64) error { return e.PeopleMoved(ctx, projectID) })
	}),
)

// past lets actions look at the whole history of events.
type past struct{ events *events.Service }

var _ actions.Past = past{}

func (p past) Standing(ctx context.Context, projectID int64) (actions.Standing, error) {
	st, err := p.events.Standing(ctx, projectID)
	return actions.Standing(st), err
}

func (p past) Tally(ctx context.Context, a *actions.PastAsk, width time.Duration) (actions.PastTally, error) {
	t, err := p.events.Tally(ctx, askEvents(a), width)
	return actions.PastTally(t), err
}

func (p past) Actors(ctx context.Context, a *actions.PastAsk) ([]int64, bool, error) {
	return p.events.Actors(ctx, askEvents(a))
}

func (p past) Scan(ctx context.Context, a *actions.PastAsk, fn func(*actions.PastEvent) error) error {
	return p.events.Scan(ctx, askEvents(a), func(e *events.Past) error { return fn((*actions.PastEvent)(e)) })
}

func askEvents(a *actions.PastAsk) *events.Ask {
	out := &events.Ask{
		ProjectID: a.ProjectID, From: a.From, To: a.To, After: a.After, Through: a.Through,
		Open: a.Open, People: a.People, Any: make([]events.Clause, len(a.Any)),
	}
	for i, c := range a.Any {
		way := events.URLAny
		switch {
		case c.URL == "":
		case c.Contains:
			way = events.URLContains
		default:
			way = events.URLIs
		}
		out.Any[i] = events.Clause{Event: c.Event, AnyEvent: c.AnyEvent, URL: c.URL, URLWay: way}
	}
	return out
}

// gallery shows actions persons by their ids.
type gallery struct{ persons *persons.Service }

var _ actions.Gallery = gallery{}

func (g gallery) Persons(ctx context.Context, projectID int64, ids []int64) ([]actions.Person, error) {
	found, err := g.persons.Several(ctx, projectID, ids)
	out := make([]actions.Person, len(found))
	for i := range found {
		p := &found[i]
		out[i] = actions.Person{
			ID: p.ID, UUID: p.UUID, Name: p.Name(), DistinctIDs: p.DistinctIDs, Properties: p.Properties, CreatedAt: p.CreatedAt,
		}
	}
	return out, err
}
