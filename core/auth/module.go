package auth

import "go.uber.org/fx"

// Module makes the Service and keeps what it knows current while the server
// runs.
var Module = fx.Module("auth", fx.Provide(fx.Annotate(New, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop))))
