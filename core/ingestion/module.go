package ingestion

import "go.uber.org/fx"

// Module makes the capture paths and the worker, which runs while the server
// does. The stages and their order are given by app.
var Module = fx.Module("ingestion",
	fx.Provide(
		NewMetrics, NewHTTP,
		fx.Annotate(NewWorker, fx.OnStart((*Worker).Start), fx.OnStop((*Worker).Stop)),
	),
	fx.Invoke(func(*Worker) {}),
)
