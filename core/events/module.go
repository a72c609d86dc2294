package events

import "go.uber.org/fx"

// Module makes the Service, which trains dictionaries while the server runs.
var Module = fx.Module("events", fx.Provide(
	fx.Annotate(New, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)),
))
