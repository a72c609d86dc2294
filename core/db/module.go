package db

import (
	"context"
	"fmt"

	"go.uber.org/fx"
)

// DataDir is the directory under which everything embedded lives.
type DataDir string

// Module opens the database and migrates it before its users start, and closes it
// after they have stopped.
var Module = fx.Module("db", fx.Provide(provide))

func provide(lc fx.Lifecycle, cfg Config, dir DataDir) (*DB, error) {
	ctx := context.Background()
	d, err := Open(ctx, cfg, string(dir))
	if err != nil {
		return nil, err
	}
	if err := d.Migrate(ctx); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	lc.Append(fx.StopHook(d.Close))
	return d, nil
}
