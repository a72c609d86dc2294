package app

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/cookieless"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/geoip"
	"github.com/guidonhq/guidon/core/ingestion/capture"
)

// visitorBindings tell events and flags about the visitor: the location of the
// address, and ids without cookies. Without a file with locations nothing is bound,
// so that a request pays nothing for it.
var visitorBindings = fx.Options(geoip.Module, cookieless.Module, fx.Provide(
	func(d *geoip.Database) (capture.Locator, decide.Locator) {
		if d.Enabled() {
			return d, d
		}
		return nil, nil
	},

	// Events and flags of visitors without cookies have the same ids.
	func(s *cookieless.Salts) (capture.Visitors, decide.Visitors) { return s, s },
))
