package console

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/web"
)

// Served reports whether the server serves a console that was built, so that links to it lead
// somewhere.
type Served bool

// Module serves the console if on, and provides Served.
func Module(on bool) fx.Option {
	if !on {
		return fx.Supply(Served(false))
	}
	return fx.Module("console", fx.Provide(
		Built, NewHTTP, func(a *Assets) Served { return Served(a.Present()) },
		fx.Annotate(func(h *HTTP) web.Routes { return h }, fx.ResultTags(`group:"routes"`)),
	))
}
