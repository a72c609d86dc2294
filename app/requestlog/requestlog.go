// Package requestlog chooses the log of accepted requests, by the setting journal.url,
// and provides it to the modules of the server.
//
// Without the setting it is the journal in the data directory, and this server is the
// only one that appends and reads. With it, it is a log in partitions that several
// servers share (package eventlog): each appends to all partitions, and processes those
// that the cluster gives it.
//
// The data directory is locked in both cases. The local journal has a lock of its own;
// with a shared log only the lock is taken.
package requestlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/cluster/notify"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/kafka"
	"github.com/guidonhq/guidon/core/eventlog/pglog"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/format"
)

// Shared is a log that servers share.
type Shared interface {
	eventlog.Log

	// ID names the log: another id has other records.
	ID() string
	// Broken returns why appends are refused now, or why the log cannot be read.
	Broken() error
	// SetRetention replaces max_bytes and max_age.
	SetRetention(maxBytes int64, maxAge time.Duration)
}

// Log is the log of accepted requests: exactly one of the two is set.
type Log struct {
	Journal journal.Journal
	Shared  Shared
}

// ID returns the id that the log has for all servers; empty for a local journal.
func (l *Log) ID() string {
	if l.Shared == nil {
		return ""
	}
	return l.Shared.ID()
}

// Stats describes the journal. Of a shared log it has the id and why it is broken.
func (l *Log) Stats(ctx context.Context) (journal.Stats, error) {
	if l.Shared == nil {
		return l.Journal.Stats(ctx)
	}
	return journal.Stats{ID: l.Shared.ID(), Broken: l.Shared.Broken()}, nil
}

// Owner names the only server that reads the log, so that its next start continues what
// it began; empty for a shared log.
func (l *Log) Owner(ctx context.Context) (string, error) {
	if l.Shared != nil {
		return "", nil
	}
	stats, err := l.Journal.Stats(ctx)
	if err != nil {
		return "", fmt.Errorf("read the id of the journal: %w", err)
	}
	return stats.ID, nil
}

// Close closes a shared log. Files closes a local journal.
func (l *Log) Close(ctx context.Context) error {
	if l.Shared == nil {
		return nil
	}
	return l.Shared.Close(ctx)
}

// Files is what the server has of the data directory: the journal, or its lock.
type Files struct {
	journal journal.Journal
	lock    *journal.Lock
}

// Close closes the journal, or releases the lock.
func (f *Files) Close(ctx context.Context) error {
	if f.journal == nil {
		return f.lock.Release()
	}
	return f.journal.Close(ctx)
}

// Starting is the context of the start of the server.
type Starting struct{ context.Context }

// Module provides the *Log, after its *Files, and what capture and the pipeline need of
// it.
func Module(cfg Config) fx.Option {
	common := fx.Provide(
		func(l *Log) capture.Appender { return l.Journal },
		func(l *Log) (eventlog.Log, capture.Log) { return l.Shared, l.Shared },
		newReaderLog,
	)
	if !cfg.Shared() {
		return fx.Options(journal.Module, common, fx.Provide(
			func(j journal.Journal) *Files { return &Files{journal: j} },
			func(j journal.Journal) *Log { return &Log{Journal: j} },
		))
	}
	return fx.Options(common, fx.Provide(
		func(lc fx.Lifecycle, dir journal.Dir, log *zap.Logger) (*Files, error) {
			return lockFiles(lc, cfg, string(dir), log)
		},
		func(lc fx.Lifecycle, start Starting, d *db.DB, h *notify.Hub, live *live.Value[journal.Config], log *zap.Logger, reg prometheus.Registerer) (*Log, error) {
			shared, err := open(start, cfg, d, h, log, reg)
			if err != nil {
				return nil, err
			}
			live.Follow(func(c *journal.Config) { shared.SetRetention(c.MaxBytes, c.MaxAge) })
			lc.Append(fx.StopHook(shared.Close))
			return &Log{Shared: shared}, nil
		},
	))
}

// newReaderLog returns the log for readers that do not know partitions: of a shared one
// the first partition, which they can only read.
func newReaderLog(l *Log) reader.Log {
	if l.Shared != nil {
		return l.Shared.Partition(0, 0)
	}
	return l.Journal
}

// lockFiles locks the directory of the journal, which is not read with a shared log.
func lockFiles(lc fx.Lifecycle, cfg Config, dataDir string, log *zap.Logger) (*Files, error) {
	lock, err := journal.AcquireLock(cfg.Config, dataDir)
	if err != nil {
		return nil, err
	}
	if dir, err := cfg.Directory(dataDir); err == nil {
		if _, err := os.Stat(filepath.Join(dir, format.FileName)); err == nil {
			log.Warn("journal in the data directory is not read: move what is unprocessed with guidon journal move, or remove the journal", zap.String("directory", dir))
		}
	}
	f := &Files{lock: lock}
	lc.Append(fx.StopHook(f.Close))
	return f, nil
}

// open opens a shared log. The database has the cursors, so it must be ready before. How
// long its migration takes has nothing to do with the log: start_timeout bounds the wait for
// a database that does not answer, and then, from its beginning, the wait for the log.
func open(ctx context.Context, cfg Config, d *db.DB, h *notify.Hub, log *zap.Logger, reg prometheus.Registerer) (Shared, error) {
	if !d.IsReady() {
		log.Info("log waits for the database", zap.Stringer("database", d))
	}
	if err := d.WaitMigrated(ctx, cfg.StartTimeout); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}

	replace := func(ctx context.Context, id string) error { return cluster.ReplaceLog(ctx, d, id) }
	if cfg.inPostgres() {
		return pglog.Open(ctx, cfg.postgres(), pglog.Options{DB: d, Cursors: cursors.New(d), Hub: h, Log: log, Metrics: reg, Replace: replace})
	}
	return kafka.Open(ctx, cfg.kafka(), kafka.Options{Cursors: cursors.New(d), Log: log, Metrics: reg, Replace: replace})
}
