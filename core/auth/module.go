package auth

import "go.uber.org/fx"

// Module provides the Service.
var Module = fx.Module("auth", fx.Provide(fx.Annotate(New, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop))))
