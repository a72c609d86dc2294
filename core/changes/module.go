package changes

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/changes/changelog"
)

// Module follows the changelog while the server runs. app provides the Refreshers
// of flags and actions.
var Module = fx.Module("changes", fx.Provide(
	changelog.NewStore,
	func(s *changelog.Store) Log { return s },
	fx.Annotate(NewHub, fx.OnStart((*Hub).Start), fx.OnStop((*Hub).Stop)),
	NewHTTP,
))
