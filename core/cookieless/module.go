package cookieless

import (
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
)

// Module renews the salts while the server runs.
var Module = fx.Module("cookieless", fx.Provide(
	fx.Annotate(func(d *db.DB, log *zap.Logger) *Salts { return NewSalts(d, log, nil) },
		fx.OnStart((*Salts).Start), fx.OnStop((*Salts).Stop)),
))
