package app

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/changes"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/ofrep"
	"github.com/guidonhq/guidon/core/web"
)

// changeBindings binds the streams of changes to flags and actions.
var changeBindings = fx.Options(changes.Module, fx.Provide(
	func(f *decide.Snapshots, a *actions.Snapshots) changes.Memory {
		return changes.Memory{Flags: f, Actions: a}
	},
	func(h *changes.Hub) ofrep.Changes { return h },
	route(func(h *changes.HTTP) web.Routes { return h }),
))
