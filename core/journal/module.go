package journal

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/config/live"
)

// Dir is the directory in which the journal creates its own.
type Dir string

// Module opens the journal and closes it after its users have stopped.
var Module = fx.Module("journal", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg *live.Value[Config], dir Dir, log *zap.Logger, reg prometheus.Registerer) (Journal, error) {
	j, err := open(*cfg.Load(), string(dir), log, reg, hooks{})
	if err != nil {
		return nil, err
	}
	cfg.Follow(j.setRetention)
	lc.Append(fx.StopHook(j.Close))
	return j, nil
}
