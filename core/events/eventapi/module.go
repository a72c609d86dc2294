package eventapi

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/tail"
)

// Module makes the routes, and the hub of live events, which works while the server runs.
var Module = fx.Module("events-api", fx.Provide(
	NewHTTP,
	fx.Annotate(newHub, fx.OnStart((*tail.Hub).Start), fx.OnStop((*tail.Hub).Stop)),
))

func newHub(cfg events.Config, s *events.Service, d *db.DB, log *zap.Logger, reg prometheus.Registerer) *tail.Hub {
	return NewHub(s, d, cfg.LiveViewers, tail.DefaultTimes(), log, reg)
}

// NewHub returns a hub for at most limit viewers of the events of s, whose database is d.
func NewHub(s *events.Service, d *db.DB, limit int, t tail.Times, log *zap.Logger, reg prometheus.Registerer) *tail.Hub {
	return tail.New(tail.NewSource(s, d), liveView, limit, t, log, reg)
}
