package ingestion

import (
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
)

// answers are those who know of an event, as far as the house has them.
type answers struct {
	fx.In
	Lookup  Lookup  `optional:"true"`
	Actions Actions `optional:"true"`
}

func newTracer(cfg Config, d *db.DB, log Log, a answers, w *Worker, del *Deliver) *Tracer {
	return NewTracer(cfg, d, log, a.Lookup).WithActions(a.Actions).WithReaders(w, del)
}

// Module takes events in, processes them and delivers them while the server
// runs. Whose stages and sinks these are is bound by app.
var Module = fx.Module("ingestion",
	fx.Provide(
		NewMetrics, newTracer,
		func(d *db.DB, l *Letters, t *Tracer, m *Meter) *ManageHTTP {
			return NewManageHTTP(d, l, t).WithMeter(m)
		},
		func(cfg Config, j Appender, m *Metrics, meter *Meter, log *zap.Logger) *HTTP {
			return NewHTTP(j, m, log).WithLimits(cfg.Limits).WithBudget(cfg.AcceptBytes).WithMeter(meter)
		},
		func(cfg Config, d *db.DB, r *Replayer) *Letters { return NewLetters(d, cfg.Limits, r.Wake) },
		fx.Annotate(func(cfg Config, d *db.DB, m *Metrics, log *zap.Logger) *Meter {
			return NewMeter(cfg, d, m, log, nil)
		}, fx.OnStart((*Meter).Start), fx.OnStop((*Meter).Stop)),
		fx.Annotate(NewWorker, fx.OnStart((*Worker).Start), fx.OnStop((*Worker).Stop)),
		fx.Annotate(NewDeliver, fx.OnStart((*Deliver).Start), fx.OnStop((*Deliver).Stop)),
		fx.Annotate(NewReplayer, fx.OnStart((*Replayer).Start), fx.OnStop((*Replayer).Stop)),
	),
	fx.Invoke(func(*Worker, *Deliver, *Replayer) {}),
)
