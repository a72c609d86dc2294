package signin

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/accounts/invitation"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/web"
)

// Module provides sessions, the Service and its routes.
var Module = fx.Module("signin", fx.Provide(
	fx.Annotate(provideSessions, fx.OnStart((*sessions.Service).Start), fx.OnStop((*sessions.Service).Stop)),
	provide,
	fx.Annotate(func(s *Service) web.Routes { return NewHTTP(s) }, fx.ResultTags(`group:"routes"`)),
))

func provideSessions(cfg Config, keys auth.Config, d *db.DB, a *auth.Service, log *zap.Logger) *sessions.Service {
	return sessions.New(cfg.Config, keys.PrincipalTTL, d, a, log)
}

func provide(cfg Config, d *db.DB, a *auth.Service, s *sessions.Service, i *invitation.Service, audit *activity.Audit, mail *email.Sender, counter *activity.Counter, log *zap.Logger, reg prometheus.Registerer) (*Service, error) {
	return New(cfg, d, a, s, i, audit, mail, counter, log, reg)
}
