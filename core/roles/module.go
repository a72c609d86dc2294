package roles

import "go.uber.org/fx"

// Only returns parts, of which the components start and stop only on a server that has
// one of the roles. Other servers make them, because features refer to each other, and
// leave them idle.
func (s Set) Only(names []string, parts ...fx.Option) fx.Option {
	if s.Has(names...) {
		return fx.Options(parts...)
	}
	return fx.Module("idle", append(parts, fx.Decorate(func(fx.Lifecycle) fx.Lifecycle { return idle{} }))...)
}

// idle is a lifecycle that starts and stops nothing.
type idle struct{}

// Append implements fx.Lifecycle.
func (idle) Append(fx.Hook) {}
