package web

import "go.uber.org/fx"

// Module makes the Server. It is started and stopped by the house itself,
// after every room has said what it serves.
var Module = fx.Module("web", fx.Provide(New))
