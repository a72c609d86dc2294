package flags

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/local"
	"github.com/guidonhq/guidon/core/match"
)

// Module makes everything that decides and manages flags, and keeps the
// snapshots current while the server runs. Whom it asks is bound by app.
var Module = fx.Module("flags",
	fx.Provide(
		func(c Config) (decide.Config, ManageConfig) { return c.Config, c.ManageConfig },
		NewStore,
		fx.Annotate(NewDefinitions, fx.As(fx.Self()), fx.As(new(decide.Source))),
		fx.Annotate(decide.NewSnapshots, fx.OnStart((*decide.Snapshots).Start), fx.OnStop((*decide.Snapshots).Stop)),
		func(s *decide.Snapshots) Refresher { return s },
		decide.NewDecider, decide.NewHTTP,
		NewService, NewHTTP,
		func(s *decide.Snapshots, source decide.Source, operators match.Registry) *local.HTTP {
			return local.NewHTTP(s, source, operators)
		},
		NewCallStage,
	),
)

func newLocalHTTP(s *decide.Snapshots, source decide.Source, operators match.Registry) *local.HTTP {
	return local.NewHTTP(s, source, operators)
}
