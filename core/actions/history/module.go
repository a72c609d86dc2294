package history

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons"
)

// Module provides the history of actions and its HTTP routes, and runs it with
// the server.
var Module = fx.Module("actions/history",
	fx.Provide(
		func(e *events.Service) EventHistory { return e },
		func(p *persons.Service) Persons { return p },
		fx.Annotate(New, fx.OnStart((*Service).Start), fx.OnStop((*Service).Stop)),
		NewHTTP,
	),
	fx.Invoke(func(*Service) {}),
)
