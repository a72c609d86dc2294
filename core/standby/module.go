package standby

import "go.uber.org/fx"

// Module provides the Service, which runs while the server runs, and Auth.
var Module = fx.Module("standby", fx.Provide(
	fx.Annotate(NewService, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)), NewAuth,
))
