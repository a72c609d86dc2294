package notifications

import "go.uber.org/fx"

// Module queues and sends notifications while the server runs. Whom it asks is
// bound by app.
var Module = fx.Module("notifications",
	fx.Provide(
		fx.Annotate(NewService, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)),
		NewHTTP,
	),
	fx.Invoke(func(*Service) {}),
)
