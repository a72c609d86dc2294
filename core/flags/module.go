package flags

import "go.uber.org/fx"

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
		NewCallStage,
	),
)
