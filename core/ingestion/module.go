package ingestion

import "go.uber.org/fx"

// Module takes events in, processes them and delivers them while the server
// runs. Whose stages and sinks these are is bound by app.
var Module = fx.Module("ingestion",
	fx.Provide(
		NewMetrics, NewHTTP, NewManageHTTP,
		fx.Annotate(NewWorker, fx.OnStart((*Worker).Start), fx.OnStop((*Worker).Stop)),
		fx.Annotate(NewDeliver, fx.OnStart((*Deliver).Start), fx.OnStop((*Deliver).Stop)),
	),
	fx.Invoke(func(*Worker, *Deliver) {}),
)
