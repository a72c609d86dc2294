package persons

import "go.uber.org/fx"

// Module provides the Service and its HTTP API.
var Module = fx.Module("persons", fx.Provide(New, NewHTTP))
