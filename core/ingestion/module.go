package ingestion

import (
	"go.uber.org/fx"
	"go.uber.org/zap"
)

// Module takes events in, processes them and delivers them while the server
// runs. Whose stages and sinks these are is bound by app.
var Module = fx.Module("ingestion",
	fx.Provide(
		NewMetrics, NewReplayer, NewManageHTTP,
		func(cfg Config, j Appender, m *Metrics, log *zap.Logger) *HTTP {
			return NewHTTP(j, m, log).WithLimits(cfg.Limits)
		},
		fx.Annotate(NewWorker, fx.OnStart((*Worker).Start), fx.OnStop((*Worker).Stop)),
		fx.Annotate(NewDeliver, fx.OnStart((*Deliver).Start), fx.OnStop((*Deliver).Stop)),
	),
	fx.Invoke(func(*Worker, *Deliver) {}),
)
