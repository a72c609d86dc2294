package actions

import "go.uber.org/fx"

// Module makes everything that manages, matches and counts actions, and keeps
// those in memory current while the server runs. Whom it asks is bound by app.
var Module = fx.Module("actions",
	fx.Provide(
		func(c Config) HistoryConfig { return c.History },
		NewStore, NewService, NewHTTP,
		fx.Annotate(NewMemory, fx.OnStart((*Memory).Start), fx.OnStop((*Memory).Stop)),
		fx.Annotate(NewHistory, fx.OnStart((*History).Start), fx.OnStop((*History).Stop)),
		NewHistoryHTTP, NewPreviewHTTP,
		func(s *Service) Definitions { return s },
		func(h *History) Calculations { return h },
		func(s *Memory) Refresher { return s },
	),
	fx.Invoke(func(*Memory, *History) {}),
)
