package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
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
		fx.Annotate(func(s *notifications.Service) pipeline.Follower { return s }, fx.ResultTags(`group:"followers"`)),
		route(func(h *notifications.HTTP) web.Routes { return h }),
	),
)

func notificationDependencies(n notifications.Notifiers, m notifications.Actions, p *persons.Service, a *auth.Service,
	l *requestlog.Log, member cluster.Member, info cluster.Info, log *zap.Logger, reg prometheus.Registerer, t *tracing.Tracing,
) (notifications.Dependencies, error) {
	deps := notifications.Dependencies{Notifiers: n, Actions: m, People: p, Projects: a, Log: log, Metrics: reg, Tracing: t}
	if node, ok := member.(*cluster.Node); ok && l.Shared != nil { // the name of a journal stays when its server starts again
		deps.Owner, deps.Dead = info.ID, node.Dead
		return deps, nil
	}
	var err error
	deps.Owner, err = l.Owner(context.Background())
	return deps, err
}
