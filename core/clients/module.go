package clients

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/clients/scripts"
	"github.com/guidonhq/guidon/core/web"
)

// Directory is the directory of the installed versions of browser libraries.
type Directory string

// Module serves browser libraries and empty answers. App binds RemoteConfig.
var Module = fx.Module("clients",
	fx.Provide(
		func(d Directory) *scripts.Library { return scripts.NewLibrary(string(d)) },
		NewHTTP,
		fx.Annotate(func(h *HTTP) web.Routes { return h }, fx.ResultTags(`group:"routes"`)),
	),
)
