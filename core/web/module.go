package web

import "go.uber.org/fx"

// Module provides the Server. app starts and stops it, after all features have
// registered their routes.
var Module = fx.Module("web", fx.Provide(New))
