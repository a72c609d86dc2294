package journal

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"
	"modernc.org/sqlite"

	"github.com/guidonhq/guidon/core/journal/format"
)

const (
	// walBytes is how large the write-ahead log grows before it begins anew.
	// It also bounds what an open after a crash has to replay.
	walBytes = 16 << 20
	// copyBytes is how much of it is copied to the main file at a time.
	copyBytes = 2 << 20
)

// wal keeps the write-ahead log small without delaying appends. A checkpoint has
// two parts: a goroutine copies the log in parts to the main file and syncs it
// while the writer continues; when the log is long enough, the writer copies the
// small rest between two groups and restarts the log. The goroutine alone would
// never copy the whole log under load, which would grow without bound; the writer
// alone would delay appends by syncs of megabytes (docs/decisions/0003 has the
// numbers).
type wal struct {
	log           *zap.Logger
	sync          func() error // syncs the main file
	onSyncFailure func(error)  // is told that the main file cannot be trusted any more

	grown int64 // bytes in the log; the writer's
	fresh int64 // of those, added since the last copy began; the writer's

	copying atomic.Bool
	behind  atomic.Int64 // bytes that the last copy had to leave
	warned  atomic.Bool
	lost    atomic.Bool   // the main file failed to sync
	kick    chan struct{} // holds one
}

func newWAL(log *zap.Logger) *wal { return &wal{log: log, kick: make(chan struct{}, 1)} }

// wrote counts what a group added: its data, what its jobs moved, and the
// pages of structure that go with either.
func (w *wal) wrote(data, moved int64) {
	n := data + moved + format.PageBytes
	if data > 0 {
		n += 3 * format.PageBytes
	}
	w.grown += n
	w.fresh += n
}

// afterGroup does the writer's part. A query that runs for long keeps the copy
// from passing its snapshot; the log grows until the query ends, and a restart
// would fail.
func (w *wal) afterGroup(by *writer) {
	switch {
	case w.copying.Load() || w.lost.Load():
	case w.fresh >= copyBytes:
		w.fresh = 0
		w.copying.Store(true)
		w.kick <- struct{}{}
	case w.grown >= walBytes && w.behind.Load() <= copyBytes && by.conn != nil:
		w.restart(by.conn)
	}
}

// restart copies the rest and restarts the log. It waits briefly for readers.
func (w *wal) restart(l *writeConn) {
	w.grown, w.fresh = 0, 0
	_, err := l.conn.ExecContext(uninterrupted, "PRAGMA busy_timeout = 20")
	if err == nil {
		_, _, err = fold(l.conn, "RESTART")
	}
	if err == nil {
		_, err = l.conn.ExecContext(uninterrupted, "PRAGMA busy_timeout = 1000")
	}
	if err != nil {
		w.handleError(err)
	}
}

// handleError logs a failed checkpoint. After a full disk or a locked file the
// next checkpoint tries again. After a failed sync the content of the main file on
// disk is unknown and the log is the only good copy: it must not be overwritten.
func (w *wal) handleError(err error) {
	w.log.Error("write-ahead log checkpoint failed", zap.Error(err))
	if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff == sqliteIOError {
		w.lost.Store(true)
		w.onSyncFailure(err)
	}
}

// fold runs one checkpoint. It returns the length of the log and the part of it
// that is in the main file, in bytes.
func fold(conn *sql.Conn, mode string) (length, copied int64, err error) {
	var busy int64
	err = conn.QueryRowContext(uninterrupted, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &length, &copied)
	return length * format.PageBytes, copied * format.PageBytes, err
}

// run copies in the background until ctx ends.
func (w *wal) run(ctx context.Context, db *sql.DB) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kick:
		}
		if err := w.copy(db); err != nil {
			w.handleError(err)
		}
		w.copying.Store(false)
	}
}

// copy copies the log to the main file and syncs it. SQLite syncs only when it has
// copied the whole log; the sync here spares the writer a large one.
func (w *wal) copy(db *sql.DB) error {
	conn, err := db.Conn(uninterrupted)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	length, copied, err := fold(conn, "PASSIVE")
	if err != nil {
		return err
	}
	w.behind.Store(length - copied)
	if stuck := length-copied > 4*walBytes; w.warned.Swap(stuck) != stuck && stuck {
		w.log.Warn("write-ahead log grows: a long-running read holds it", zap.Int64("bytes", length))
	}
	return w.sync()
}
