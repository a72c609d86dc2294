package db

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"
)

// DataDir is the directory under which everything embedded lives.
type DataDir string

// Module opens the database as OpenServer does before its users start, and closes
// it after they have stopped.
var Module = fx.Module("db", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg Config, dir DataDir, log *zap.Logger, reg prometheus.Registerer) (*DB, error) {
	d, err := OpenServer(context.Background(), cfg, string(dir), log)
	if err != nil {
		return nil, err
	}
	if err := d.register(reg); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	lc.Append(fx.StartHook(d.startCheck))
	lc.Append(fx.StopHook(d.Close))
	return d, nil
}
