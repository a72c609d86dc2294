package pipeline

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// fence is the lease of a worker.
type fence struct {
	lease    int64  // 0: without one
	suffix   string // of the names of its cursors in the database
	onFenced func()
	once     sync.Once
}

// Fence makes the worker and its followers write their cursors under the lease with
// this token, which is above 0. They take the cursors over when they start. When a
// higher token has taken one over, its reader stops, and fenced is called once; it
// must not wait for the worker, and may be nil. Fence must be called before Start.
func (w *Worker) Fence(token int64, fenced func()) { w.lease, w.onFenced = token, fenced }

// newCursor returns the cursor of a reader under the lease of the worker.
func (w *Worker) newCursor(reader string) *readerCursor {
	return &readerCursor{store: w.store, name: reader + w.suffix, lease: w.lease, timeout: w.cfg.Timeout}
}

// newCommitter returns what commits the cursor of a reader in the log. That cursor bounds
// what the log deletes, and shows the lag; where the reader goes on after a crash is in the
// cursor of the database, which the transaction of each batch writes.
func (w *Worker) newCommitter(name string, at journal.Position, logger *zap.Logger) *reader.Committer {
	c := reader.NewCommitter(w.log, name, at, logger)
	if w.lease != 0 {
		c.Pause(reader.LeasedCommitInterval)
	}
	return c
}

// waitFenced pauses a reader whose cursor is not the known one. It returns true if
// the reader must begin again from the cursor in the database: that finds out whether
// the lease has ended.
func (w *Worker) waitFenced(ctx context.Context, logger *zap.Logger, err error) (again bool) {
	logger.Warn("cursor in the database was moved by another process or a restore: reading it again", zap.Error(err))
	pause := w.cfg.RetryMax
	if w.lease != 0 {
		pause = time.Millisecond
	}
	return retry.Sleep(ctx, pause)
}

// stopFenced reports that a reader stops because the lease has ended.
func (w *Worker) stopFenced(logger *zap.Logger, err error) {
	logger.Warn("cursor belongs to another owner: reader stopped", zap.Int64("lease", w.lease), zap.Error(err))
	if w.onFenced != nil {
		w.once.Do(w.onFenced)
	}
}
