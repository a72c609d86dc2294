package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// store keeps cursors. Its methods work in the transaction of their context when
// there is one.
type store struct{ db *db.DB }

// cursor is a row of ingestion_cursors: the position of a reader at its last
// committed transaction, the journal of that position, and the lease under which it
// was written.
type cursor struct {
	journal  string
	position journal.Position
	lease    int64
}

// stored reports whether the row has a position. A reader that has taken its cursor
// over and has committed nothing has a row without one.
func (c cursor) stored() bool { return c.journal != "" }

// cursorColumns are the columns of cursorRow.scan.
const cursorColumns = "journal, seq, idx, count, lease"

// cursorRow is what the store reads of a row.
type cursorRow struct {
	journal                string
	seq, idx, count, lease int64
}

// loadCursor returns the reader's row; false without one.
func (s *store) loadCursor(ctx context.Context, reader string) (c cursor, ok bool, err error) {
	row := s.db.Read(ctx).QueryRowContext(ctx, "SELECT "+cursorColumns+" FROM ingestion_cursors WHERE name = ?", reader)
	if c, ok, err = scanCursor(row); err != nil {
		return cursor{}, false, fmt.Errorf("read the cursor of %s: %w", reader, err)
	}
	return c, ok, nil
}

func scanCursor(row *sql.Row) (c cursor, ok bool, err error) {
	var r cursorRow
	err = row.Scan(&r.journal, &r.seq, &r.idx, &r.count, &r.lease)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return cursor{}, false, nil
	case err != nil:
		return cursor{}, false, err
	}
	return cursor{r.journal, journal.Position{Seq: uint64(r.seq), Index: uint32(r.idx), Count: uint64(r.count)}, r.lease}, true, nil
}

// takeOverSQL sets the lease of a cursor, which it creates without a position. It
// waits for a transaction that holds the row, and finds no row under a higher lease.
const takeOverSQL = `INSERT INTO ingestion_cursors (name, journal, seq, idx, count, updated_at, lease)
	VALUES (?, '', 0, 0, 0, ?, ?) ON CONFLICT (name) DO UPDATE SET lease = EXCLUDED.lease
	WHERE ingestion_cursors.lease <= EXCLUDED.lease RETURNING ` + cursorColumns

// takeOver gives the reader's cursor to the owner of a lease and returns it. From
// then on transactions with a lower lease fail. It fails with ErrFenced if the cursor
// has a higher one.
func (s *store) takeOver(ctx context.Context, reader string, lease int64) (c cursor, err error) {
	c, ok, err := scanCursor(s.db.Write(ctx).QueryRowContext(ctx, takeOverSQL, reader, time.Now().UnixMicro(), lease))
	if err != nil {
		return cursor{}, fmt.Errorf("take over the cursor of %s: %w", reader, err)
	}
	if !ok {
		return cursor{}, fmt.Errorf("take over the cursor of %s: %w", reader, ErrFenced)
	}
	return c, nil
}

// The statements of saveCursor are raw because their text must not change from batch
// to batch: the connection keeps the prepared statement.
const (
	insertCursorSQL = `INSERT INTO ingestion_cursors (journal, seq, idx, count, updated_at, name, lease)
		VALUES (%s) ON CONFLICT (name) DO UPDATE SET journal = EXCLUDED.journal, seq = EXCLUDED.seq, idx = EXCLUDED.idx,
			count = EXCLUDED.count, updated_at = EXCLUDED.updated_at
		WHERE ingestion_cursors.lease = 0 AND EXCLUDED.lease = 0 AND ingestion_cursors.journal <> EXCLUDED.journal`
	updateCursorSQL = `UPDATE ingestion_cursors SET journal = %s, seq = %s, idx = %s, count = %s, updated_at = %s
		WHERE name = %s AND lease = %s AND (journal = %s AND seq = %s AND idx = %s OR lease = 0 AND journal <> %s)`
)

var (
	insertCursorSQLite   = fmt.Sprintf(insertCursorSQL, "?, ?, ?, ?, ?, ?, ?")
	insertCursorPostgres = fmt.Sprintf(insertCursorSQL, "$1, $2, $3, $4, $5, $6, $7")
	updateCursorSQLite   = fmt.Sprintf(updateCursorSQL, "?", "?", "?", "?", "?", "?", "?", "?", "?", "?", "?")
	updateCursorPostgres = fmt.Sprintf(updateCursorSQL, "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11")
)

// saveCursor replaces the reader's row, if it is still the one that the reader has
// read or written last; exists is false if there was none. Else it fails with
// ErrFenced. Without a lease it also replaces the row of another journal: of another
// server on the database.
func (s *store) saveCursor(ctx context.Context, reader string, was cursor, exists bool, to cursor) error {
	query := insertCursorSQLite
	switch {
	case exists && s.db.Postgres():
		query = updateCursorPostgres
	case exists:
		query = updateCursorSQLite
	case s.db.Postgres():
		query = insertCursorPostgres
	}
	args := make([]any, 0, 11)
	args = append(args, to.journal, int64(to.position.Seq), int64(to.position.Index), int64(to.position.Count), time.Now().UnixMicro(), reader, to.lease)
	if exists {
		args = append(args, was.journal, int64(was.position.Seq), int64(was.position.Index), to.journal)
	}
	var rows int64
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		result, err := s.db.SQLTx(ctx).ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		rows, err = result.RowsAffected()
		return err
	})
	if err == nil && rows == 0 {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("write the cursor of %s: %w", reader, err)
	}
	return nil
}

// probeSQL writes a row that no reader has.
const probeSQL = `INSERT INTO ingestion_cursors (name, journal, seq, idx, count, updated_at)
	VALUES ('probe', '', 0, 0, 0, ?) ON CONFLICT (name) DO UPDATE SET updated_at = EXCLUDED.updated_at`

// rowNumbersLock is the advisory lock of the transactions that give rows of the event
// store their numbers.
const rowNumbersLock = 0x677569646f6e0001

// lockRowNumbersSQL also ends the session of a process that stops in the transaction
// for 10 seconds: all nodes wait for the lock.
const lockRowNumbersSQL = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), pg_advisory_xact_lock($1)`

// lockRowNumbers locks the numbers of rows until the end of the transaction, on
// PostgreSQL.
func (s *store) lockRowNumbers(ctx context.Context) error {
	if _, err := s.db.SQLTx(ctx).ExecContext(ctx, lockRowNumbersSQL, int64(rowNumbersLock)); err != nil {
		return fmt.Errorf("lock the row numbers of events: %w", err)
	}
	return nil
}

// isOutage reports whether err is a failure of the database: it is unavailable,
// asks for the transaction again, or fails the smallest transaction, too.
func (s *store) isOutage(ctx context.Context, err error, timeout time.Duration) bool {
	if fault.Is(err, fault.Unavailable) || db.Retryable(err) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = s.db.Write(ctx).ExecContext(ctx, probeSQL, time.Now().UnixMicro())
	return err != nil
}
