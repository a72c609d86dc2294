package admin

import "go.uber.org/fx"

// Module provides the handlers of the server's administration.
var Module = fx.Module("admin", fx.Provide(NewPlugins, NewReadiness, NewHealth))
