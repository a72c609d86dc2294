package actions

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/actions/history"
	"github.com/guidonhq/guidon/core/events"
)

// Module provides the management, matching and counting of actions, and keeps
// the compiled actions in memory current while the server runs. app binds
// plugins, cohorts and chat.
var Module = fx.Module("actions", history.Module,
	fx.Provide(
		func(c Config) history.Config { return c.History },
		func(e *events.Service) Events { return e },
		NewStore, NewOverBudget, NewService, NewEventMatcher, NewHTTP, NewPreviewHTTP, NewSeriesHTTP,
		fx.Annotate(NewSnapshots, fx.OnStart((*Snapshots).Start), fx.OnStop((*Snapshots).Stop)),
		func(s *Service) history.Definitions { return s },
		func(h *history.Service) Calculations { return h },
		func(h *history.Service) Series { return h },
		func(s *Snapshots) Refresher { return s },
	),
	fx.Invoke(func(_ *Snapshots, s *Service, h *history.Service, e *events.Service) {
		h.CorrectWith(s)
		e.OnErase(h.Erased)
		e.OnExpire(h.Expired)
	}),
)
