package app

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/pipeline"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// notificationBindings says who answers the questions of notifications: actions
// what fits, persons who did it, the host who can be told.
var notificationBindings = fx.Options(
	notifications.Module,
	fx.Provide(
		func(m *actions.Memory, s *actions.Store, f *fitter, e actions.Recent, z actions.Zones, o match.Registry) notifications.Definitions {
			return &posting{memory: m, store: s, fitter: f, recent: e, zones: z, operators: o}
		},
		func(h *host.Host, d notifications.Definitions, p *persons.Service, a *auth.Service, log *zap.Logger, reg prometheus.Registerer) notifications.Dependencies {
			return notifications.Dependencies{
				Notifiers: notifiers{h}, Definitions: d, People: p, Projects: projects{a}, Log: log, Metrics: reg,
			}
		},
		func(s *notifications.Service) actions.Chat { return s },
		fx.Annotate(newFollower, fx.OnStart((*pipeline.FollowerRunner).Start), fx.OnStop((*pipeline.FollowerRunner).Stop)),
		route(func(h *notifications.HTTP) web.Routes { return h }),
	),
	fx.Invoke(func(*pipeline.FollowerRunner) {}),
)

func newFollower(w *pipeline.Worker, s *notifications.Service) *pipeline.FollowerRunner {
	return pipeline.NewFollowerRunner(w, s)
}

// notifiers shows notifications the instances the host runs.
type notifiers struct{ *host.Host }

func (n notifiers) Notifiers() []notifications.Notifier {
	instances := n.Host.Notifiers()
	out := make([]notifications.Notifier, len(instances))
	for i := range instances {
		out[i] = instances[i]
	}
	return out
}

// projects tells the name of a project and where it is.
type projects struct{ auth *auth.Service }

func (p projects) Project(ctx context.Context, id int64) (string, *time.Location) {
	found, err := p.auth.Project(ctx, id)
	if err != nil {
		return "", time.UTC
	}
	return found.Name, found.Location()
}

// posting tells notifications which actions post, and what fits them.
type posting struct {
	memory *actions.Memory
	store  *actions.Store
	fitter *fitter
	recent actions.Recent

	zones     actions.Zones
	operators match.Registry
}

func (p *posting) Posts(projectID int64) bool { return p.memory.Project(projectID).Posting.Len() > 0 }

func (p *posting) Matching(ctx context.Context, projectID int64, batch []*sdk.Event, fn func(*sdk.Event, *notifications.Action)) error {
	project := p.memory.Project(projectID)
	return p.fitter.fitting(ctx, projectID, project, project.Posting, batch, func(ev *sdk.Event, a *actions.Action) { fn(ev, told(a)) })
}

// told is an action as notifications see it.
func told(a *actions.Action) *notifications.Action {
	out := &notifications.Action{ID: a.ID, Posts: a.PostToChat, Name: a.Title(), Tags: a.Tags, Format: a.Format}
	for _, d := range a.Destinations {
		out.Destinations = append(out.Destinations, notifications.Destination(d))
	}
	return out
}

func (p *posting) Action(ctx context.Context, projectID, id int64) (*notifications.Action, error) {
	a, err := p.store.Get(ctx, projectID, id)
	if err != nil {
		return nil, err
	}
	out := told(&a)
	out.Posts = out.Posts && !a.Deleted
	return out, nil
}

// sampled is how many of the newest events are looked at for a sample.
const sampled = 200

func (p *posting) Sample(ctx context.Context, projectID, id int64) (*sdk.Event, error) {
	a, err := p.store.Get(ctx, projectID, id)
	if err != nil {
		return nil, err
	}
	m, err := actionmatch.Compile(a.Steps, actionmatch.CompileOptions{Location: p.zones.Location(ctx, projectID), Operators: p.operators, Lenient: true})
	if err != nil || m.Never() {
		return nil, err
	}
	name := ""
	if len(a.Steps) == 1 {
		name = a.Steps[0].Event
	}
	events, err := p.recent.Recent(ctx, projectID, name, "", sampled)
	if err != nil {
		return nil, err
	}
	return p.fitter.first(ctx, projectID, m, events), nil
}
