package app

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/geoip"
	"github.com/guidonhq/guidon/core/ingestion/capture"
)

// geoipBindings give events and flags the locations of addresses. Without a configured file
// they bind nothing, so that a request pays nothing for it.
var geoipBindings = fx.Options(geoip.Module, fx.Provide(
	func(d *geoip.Database) (capture.Locator, decide.Locator) {
		if d.Enabled() {
			return d, d
		}
		return nil, nil
	},
))
