// Package checkpoint keeps the write-ahead log of a journal small without delaying
// appends.
package checkpoint

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/format"
)

const (
	// LogBytes is how large the write-ahead log grows before it starts again at its beginning.
	// It also bounds what an open after a crash has to replay.
	LogBytes = 16 << 20
	// copyBytes is how much of it is copied to the main file at a time.
	copyBytes = 2 << 20
)

// Log is a write-ahead log. A checkpoint has
// two parts: a goroutine copies the log in parts to the main file and syncs it
// while the writer continues; when the log is long enough, the writer copies the
// small rest between two groups and restarts the log. The goroutine alone would
// never copy the whole log under load, which would grow without bound; the writer
// alone would delay appends by syncs of megabytes (docs/decisions/0003 has the
// numbers).
type Log struct {
	log    *zap.Logger
	mu     sync.Mutex   // held while the log is copied in the background, or the file is replaced
	db     *sql.DB      // for writing; guarded by mu after the start
	sync   func() error // syncs the main file; like db
	failed func(error)  // called when the main file cannot be trusted any more

	page  int64 // bytes of a page of the file
	grown int64 // bytes in the log; the writer's
	fresh int64 // of those, added since the last copy began; the writer's

	copying atomic.Bool
	behind  atomic.Int64 // bytes that the last copy had to leave
	warned  atomic.Bool
	lost    atomic.Bool   // the main file failed to sync
	kick    chan struct{} // holds one
}

// New returns a Log that is in use after Use. syncFailed is called when the main
// file cannot be trusted any more.
func New(log *zap.Logger, syncFailed func(error)) *Log {
	return &Log{log: log, page: format.PageBytes, failed: syncFailed, kick: make(chan struct{}, 1)}
}

// Use sets the file: its pool for writing, nil if there is none, and what syncs it.
// While Run runs, it may only be called between Pause and its resume.
func (w *Log) Use(db *sql.DB, sync func() error) {
	w.db, w.sync = db, sync
	w.grown, w.fresh = 0, 0
	w.behind.Store(0)
}

// SetPage sets the bytes of a page of the file, at the times of Use. It is that of new
// files before.
func (w *Log) SetPage(bytes int64) { w.page = bytes }

// PageBytes returns the bytes of a page of the file. It must not run beside SetPage.
func (w *Log) PageBytes() int64 { return w.page }

// Pause waits until no checkpoint runs in the background and allows none until
// resume is called. Only the writer may call it.
func (w *Log) Pause() (resume func()) {
	w.mu.Lock()
	return w.mu.Unlock
}

// Lost reports whether the main file failed to sync.
func (w *Log) Lost() bool { return w.lost.Load() }

// Wrote counts what a group added: its data, what its jobs moved, and the
// pages of structure that go with either.
func (w *Log) Wrote(data, moved int64) {
	n := data + moved + w.page
	if data > 0 {
		n += 3 * w.page
	}
	w.grown += n
	w.fresh += n
}

// AfterGroup does the writer's part. A query that runs for long keeps the copy
// from passing its snapshot; the log grows until the query ends, and a restart
// would fail.
func (w *Log) AfterGroup(conn *sql.Conn) {
	switch {
	case w.copying.Load() || w.lost.Load():
	case w.fresh >= copyBytes:
		w.fresh = 0
		w.copying.Store(true)
		w.kick <- struct{}{}
	case w.grown >= LogBytes && w.behind.Load() <= copyBytes && conn != nil:
		w.restart(conn)
	}
}

// restart copies the rest and restarts the log. It waits briefly for readers.
func (w *Log) restart(conn *sql.Conn) {
	w.grown, w.fresh = 0, 0
	_, err := conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 20")
	if err == nil {
		_, _, err = w.fold(conn, "RESTART")
	}
	if err == nil {
		_, err = conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 1000")
	}
	if err != nil {
		w.handleError(err)
	}
}

// handleError logs a failed checkpoint. After a full disk or a locked file the
// next checkpoint tries again. After a failed sync the content of the main file on
// disk is unknown and the log is the only good copy: it must not be overwritten.
func (w *Log) handleError(err error) {
	w.log.Error("write-ahead log checkpoint failed", zap.Error(err))
	if format.IsDiskFailure(err) {
		w.lost.Store(true)
		w.failed(err)
	}
}

// fold runs one checkpoint. It returns the length of the log and the part of it
// that is in the main file, in bytes.
func (w *Log) fold(conn *sql.Conn, mode string) (length, copied int64, err error) {
	var busy int64
	err = conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &length, &copied)
	return length * w.page, copied * w.page, err
}

// Run copies in the background until ctx ends.
func (w *Log) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		}
		if err := w.copy(); err != nil {
			w.handleError(err)
		}
		w.copying.Store(false)
	}
}

// copy copies the log to the main file and syncs it. SQLite syncs only when it has
// copied the whole log; the sync here spares the writer a large one.
func (w *Log) copy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db == nil { // the replacement of the file failed
		return nil
	}
	conn, err := w.db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	length, copied, err := w.fold(conn, "PASSIVE")
	if err != nil {
		return err
	}
	w.behind.Store(length - copied)
	if stuck := length-copied > 4*LogBytes; w.warned.Swap(stuck) != stuck && stuck {
		w.log.Warn("write-ahead log grows: a long-running read holds it", zap.Int64("bytes", length))
	}
	return w.sync()
}
