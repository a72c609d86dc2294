package journal

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"
)

// Dir is the directory in which the journal creates its own.
type Dir string

// Module opens the journal and closes it after its users have stopped.
var Module = fx.Module("journal", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg Config, dir Dir, log *zap.Logger, reg prometheus.Registerer) (Journal, error) {
	j, err := Open(cfg, string(dir), log, reg)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(j.Close))
	return j, nil
}
