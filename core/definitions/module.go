package definitions

import "go.uber.org/fx"

// Module makes the Service; it has no life of its own.
var Module = fx.Module("definitions", fx.Provide(New, NewHTTP))
