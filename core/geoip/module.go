package geoip

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/web"
)

// Module follows the file while the server runs.
var Module = fx.Module("geoip", fx.Provide(
	fx.Annotate(New, fx.OnStart((*Database).Start), fx.OnStop((*Database).Stop)),
	fx.Annotate(func(d *Database) web.Routes { return d }, fx.ResultTags(`group:"routes"`)),
))
