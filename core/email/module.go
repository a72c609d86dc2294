package email

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/web"
)

// Module provides the Sender.
var Module = fx.Module("email", fx.Provide(
	fx.Annotate(provide, fx.OnStart((*Sender).Start), fx.OnStop((*Sender).Stop)),
))

// provide needs the database and the counter of the activity log only to stop before them:
// they get results of e-mails.
func provide(_ *db.DB, _ *activity.Counter, cfg Config, http web.Config, log *zap.Logger, reg prometheus.Registerer) (*Sender, error) {
	return New(cfg, strings.TrimRight(http.ConsoleSite(), "/"), log, reg)
}
