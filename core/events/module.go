package events

import "go.uber.org/fx"

// Module makes the Service; it has no life of its own.
var Module = fx.Module("events", fx.Provide(New, NewHTTP))
