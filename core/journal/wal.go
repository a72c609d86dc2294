package journal

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"
	"modernc.org/sqlite"
)

const (
	// walBytes is how large the write-ahead log grows before it begins anew.
	// It also bounds what an open after a crash has to replay.
	walBytes = 16 << 20
	// copyBytes is how much of it is copied to the main file at a time.
	copyBytes = 2 << 20
)

// wal keeps the write-ahead log small without making appends wait. Folding it
// into the main file is done in two parts: a goroutine copies and syncs, piece
// by piece, while the writer goes on; when the log is long enough the writer,
// between two groups, copies the little that was added since and starts the
// log again from its beginning. Left to the goroutine alone the log would
// never be copied completely under load, and grow without end; left to the
// writer alone every append would now and then wait for megabytes to be
// synced (docs/decisions/0003 has the numbers).
type wal struct {
	log  *zap.Logger
	sync func() error // syncs the main file
	sick func(error)  // is told that the main file cannot be trusted any more

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
	n := data + moved + pageBytes
	if data > 0 {
		n += 3 * pageBytes
	}
	w.grown += n
	w.fresh += n
}

// afterGroup does the writer's part. A reader in the middle of a query keeps
// the copy from going past what it looks at; as long as one does so for long,
// the log grows and there is no use in trying to restart it.
func (w *wal) afterGroup(by *writer) {
	switch {
	case w.copying.Load() || w.lost.Load():
	case w.fresh >= copyBytes:
		w.fresh = 0
		w.copying.Store(true)
		w.kick <- struct{}{}
	case w.grown >= walBytes && w.behind.Load() <= copyBytes && by.link != nil:
		w.restart(by.link)
	}
}

// restart copies what is left and lets the log begin anew. A reader is waited
// for, briefly.
func (w *wal) restart(l *link) {
	w.grown, w.fresh = 0, 0
	_, err := l.conn.ExecContext(always, "PRAGMA busy_timeout = 20")
	if err == nil {
		_, _, err = fold(l.conn, "RESTART")
	}
	if err == nil {
		_, err = l.conn.ExecContext(always, "PRAGMA busy_timeout = 1000")
	}
	if err != nil {
		w.failed(err)
	}
}

// failed tells what went wrong. A log that cannot be folded because the disk
// is full or a file is locked is tried again; but after a failed sync nobody
// knows what of the main file is on disk, and the log is all there is: it must
// not be overwritten.
func (w *wal) failed(err error) {
	w.log.Error("the write-ahead log could not be folded into the journal", zap.Error(err))
	if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff == sqliteIOError {
		w.lost.Store(true)
		w.sick(err)
	}
}

// fold runs one checkpoint. It returns how long the log is, and how much of it
// is in the main file.
func fold(conn *sql.Conn, mode string) (length, copied int64, err error) {
	var busy int64
	err = conn.QueryRowContext(always, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &length, &copied)
	return length * pageBytes, copied * pageBytes, err
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
			w.failed(err)
		}
		w.copying.Store(false)
	}
}

// copy moves what the log has so far to the main file. SQLite leaves it
// unsynced as long as the log is not copied to its end; the sync here takes
// that off the writer, who would have to do it all at once.
func (w *wal) copy(db *sql.DB) error {
	conn, err := db.Conn(always)
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
		w.log.Warn("the write-ahead log grows because a reader stays in it", zap.Int64("bytes", length))
	}
	return w.sync()
}
