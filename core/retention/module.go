package retention

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
)

// Module deletes old events while the server runs.
var Module = fx.Module("retention",
	fx.Provide(
		fx.Annotate(func(c events.Config, d *db.DB, e *events.Service, log *zap.Logger, reg prometheus.Registerer) *Service {
			return New(c.Retention, d, e, log, reg)
		}, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)),
		NewHTTP,
	),
	fx.Invoke(func(*Service) {}),
)
