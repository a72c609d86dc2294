package ingestion

import (
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
)

// stored is the event store, when the house has one.
type stored struct {
	fx.In
	Lookup Lookup `optional:"true"`
}

func newTracer(cfg Config, d *db.DB, log Log, s stored) *Tracer {
	return NewTracer(cfg, d, log, s.Lookup)
}

// Module takes events in, processes them and delivers them while the server
// runs. Whose stages and sinks these are is bound by app.
var Module = fx.Module("ingestion",
	fx.Provide(
		NewMetrics, newTracer, NewManageHTTP,
		func(cfg Config, j Appender, m *Metrics, log *zap.Logger) *HTTP {
			return NewHTTP(j, m, log).WithLimits(cfg.Limits)
		},
		func(cfg Config, d *db.DB, r *Replayer) *Letters { return NewLetters(d, cfg.Limits, r.Wake) },
		fx.Annotate(NewWorker, fx.OnStart((*Worker).Start), fx.OnStop((*Worker).Stop)),
		fx.Annotate(NewDeliver, fx.OnStart((*Deliver).Start), fx.OnStop((*Deliver).Stop)),
		fx.Annotate(NewReplayer, fx.OnStart((*Replayer).Start), fx.OnStop((*Replayer).Stop)),
	),
	fx.Invoke(func(*Worker, *Deliver, *Replayer) {}),
)
