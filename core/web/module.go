package web

import "go.uber.org/fx"

// Module provides the Server. app starts it when all features have registered their routes.
var Module = fx.Module("web", fx.Provide(New))
