package db

import (
	"context"

	"go.uber.org/fx"
	"go.uber.org/zap"
)

// DataDir is the directory under which everything embedded lives.
type DataDir string

// Module opens the database as OpenServer does before its users start, and closes
// it after they have stopped.
var Module = fx.Module("db", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg Config, dir DataDir, log *zap.Logger) (*DB, error) {
	d, err := OpenServer(context.Background(), cfg, string(dir), log)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(d.Close))
	return d, nil
}
