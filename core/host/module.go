package host

import (
	"context"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/host/settings"
)

// Module provides the Host. It starts the plugins without waiting for them and stops
// them.
var Module = fx.Module("host", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg settings.Config, deps Deps) (*Host, error) {
	h, err := New(cfg, deps)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StartStopHook(func(ctx context.Context) error { return h.Start(ctx) }, func(ctx context.Context) error { return h.Stop(ctx) }))
	return h, nil
}
