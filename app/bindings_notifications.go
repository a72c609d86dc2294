package app

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web"
)

// notificationBindings binds notifications to actions, persons and the journal.
var notificationBindings = fx.Options(
	notifications.Module,
	fx.Provide(
		notificationDependencies,
		fx.Annotate(newFollower, fx.OnStart((*pipeline.FollowerRunner).Start), fx.OnStop((*pipeline.FollowerRunner).Stop)),
		route(func(h *notifications.HTTP) web.Routes { return h }),
	),
	fx.Invoke(func(*pipeline.FollowerRunner) {}),
)

func notificationDependencies(n notifications.Notifiers, m notifications.Actions, p *persons.Service, a *auth.Service,
	j journal.Journal, log *zap.Logger, reg prometheus.Registerer, t *tracing.Tracing,
) (notifications.Dependencies, error) {
	// One process at a time has the journal. A log that nodes share has one id for all of
	// them: the owner must stay empty there.
	stats, err := j.Stats(context.Background())
	if err != nil {
		return notifications.Dependencies{}, fmt.Errorf("read the id of the journal: %w", err)
	}
	return notifications.Dependencies{Owner: stats.ID, Notifiers: n, Actions: m, People: p, Projects: a, Log: log, Metrics: reg, Tracing: t}, nil
}

func newFollower(w *pipeline.Worker, s *notifications.Service) *pipeline.FollowerRunner {
	return pipeline.NewFollowerRunner(w, s)
}
