package pluginconfig

import (
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/admin"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/web"
)

// Module provides the configuration of plugins, and its routes. encryptionKey is the
// setting flags.encryption_key.
func Module(encryptionKey string) fx.Option {
	return fx.Module("pluginconfig", fx.Provide(
		NewInstances,
		func(i *Instances) admin.LeftOut { return i.LeftOut },
		fx.Annotate(func(d *db.DB, dir db.DataDir, i *Instances, deps host.Deps, audit *activity.Audit, log *zap.Logger) *Service {
			keys := func(create bool) (*sealed.Keyring, error) {
				if create {
					return sealed.Load(string(dir), encryptionKey)
				}
				return sealed.LoadExisting(string(dir), encryptionKey)
			}
			return New(d, string(dir), i, Plugins{deps.BundledNames, deps.Schema}, keys, audit, log)
		}, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)),
		fx.Annotate(func(s *Service, public admin.Public) web.Routes { return NewHTTP(s, public) }, fx.ResultTags(`group:"routes"`)),
	))
}
