package console

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/web"
)

// Module serves the console if on, and nothing else.
func Module(on bool) fx.Option {
	if !on {
		return fx.Options()
	}
	return fx.Module("console", fx.Provide(
		Built, NewHTTP,
		fx.Annotate(func(h *HTTP) web.Routes { return h }, fx.ResultTags(`group:"routes"`)),
	))
}
