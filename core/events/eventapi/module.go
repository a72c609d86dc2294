package eventapi

import "go.uber.org/fx"

// Module makes the routes.
var Module = fx.Module("events-api", fx.Provide(NewHTTP))
