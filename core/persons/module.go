package persons

import "go.uber.org/fx"

// Module makes the Service; it has no life of its own.
var Module = fx.Module("persons", fx.Provide(New, NewHTTP))
