package requestlog

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/logmove"
)

// Move appends what readers of the journal in a data directory have not done to the shared
// log of cfg. It fails while a server uses the data directory. It ends with an error before
// the next append when a server of the database runs: the server could store moved events
// of an erased person before it reads the moved erasure. It sets o.Check. See logmove.Move.
func Move(ctx context.Context, cfg Config, database db.Config, dataDir string, log *zap.Logger, o logmove.Options) (report logmove.Report, err error) {
	if !cfg.Shared() {
		return report, errors.New("there is no shared log: set journal.url")
	}
	dir, err := cfg.Directory(dataDir)
	if err != nil {
		return report, err
	}
	if _, err := os.Stat(dir); err != nil {
		return report, fmt.Errorf("there is no journal to move: %w", err)
	}
	d, err := db.OpenExisting(ctx, database, dataDir)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	o.Check = func(ctx context.Context) error { return cluster.CheckNoNodes(ctx, d, "the journal is moved") }
	if !o.DryRun {
		if err := o.Check(ctx); err != nil {
			return report, err
		}
	}
	j, err := journal.Open(cfg.Config, dataDir, log, nil)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, j.Close(context.WithoutCancel(ctx))) }()
	shared, err := open(ctx, cfg, d, nil, log, nil)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, shared.Close(context.WithoutCancel(ctx))) }()
	return logmove.Move(ctx, j, shared, o)
}
