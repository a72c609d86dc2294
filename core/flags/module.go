package flags

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/match"
)

// Module makes everything that decides and manages flags, and keeps the
// snapshots current while the server runs. Whom it asks is bound by app.
var Module = fx.Module("flags",
	fx.Provide(
		func(c Config) (DecideConfig, ManageConfig) { return c.DecideConfig, c.ManageConfig },
		NewStore,
		fx.Annotate(NewDefinitions, fx.As(fx.Self()), fx.As(new(Source))),
		fx.Annotate(NewSnapshots, fx.OnStart((*Snapshots).Start), fx.OnStop((*Snapshots).Stop)),
		func(s *Snapshots) Refresher { return s },
		NewDecider, NewDecideHTTP,
		NewService, NewHTTP,
		func(s *Snapshots, source Source, operators match.Registry) *LocalHTTP {
			return NewLocalHTTP(s, source, operators)
		},
		NewCallStage,
	),
)

func newLocalHTTP(s *Snapshots, source Source, operators match.Registry) *LocalHTTP {
	return NewLocalHTTP(s, source, operators)
}
