package pipeline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// store keeps cursors. Its methods work in the transaction of their context when
// there is one.
type store struct{ db *db.DB }

// cursor is the position of a reader at its last committed transaction, and the
// journal of that position.
type cursor struct {
	journal  string
	position journal.Position
}

// cursorRow is a row of ingestion_cursors.
type cursorRow struct {
	bun.BaseModel `bun:"table:ingestion_cursors,alias:c"`

	Name      string `bun:",pk"`
	Journal   string
	Seq       int64
	Idx       int64
	Count     int64
	UpdatedAt db.Time
}

// loadCursor returns the reader's cursor; false when it has none.
func (s *store) loadCursor(ctx context.Context, reader string) (c cursor, ok bool, err error) {
	var r cursorRow
	err = s.db.Read(ctx).NewSelect().Model(&r).Where("name = ?", reader).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return cursor{}, false, nil
	case err != nil:
		return cursor{}, false, fmt.Errorf("read the cursor of %s: %w", reader, err)
	}
	return cursor{r.Journal, journal.Position{Seq: uint64(r.Seq), Index: uint32(r.Idx), Count: uint64(r.Count)}}, true, nil
}

// saveCursorSQL is raw because its text must not change from batch to batch: the
// connection keeps the prepared statement.
const saveCursorSQL = `INSERT INTO ingestion_cursors (name, journal, seq, idx, count, updated_at)
	VALUES (%s) ON CONFLICT (name) DO UPDATE SET journal = EXCLUDED.journal, seq = EXCLUDED.seq,
		idx = EXCLUDED.idx, count = EXCLUDED.count, updated_at = EXCLUDED.updated_at`

var (
	saveCursorSQLite   = fmt.Sprintf(saveCursorSQL, "?, ?, ?, ?, ?, ?")
	saveCursorPostgres = fmt.Sprintf(saveCursorSQL, "$1, $2, $3, $4, $5, $6")
)

// saveCursor writes the reader's cursor.
func (s *store) saveCursor(ctx context.Context, reader string, c cursor) error {
	query := saveCursorSQLite
	if s.db.Postgres() {
		query = saveCursorPostgres
	}
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		_, err := s.db.SQLTx(ctx).ExecContext(ctx, query, reader, c.journal, int64(c.position.Seq), int64(c.position.Index),
			int64(c.position.Count), time.Now().UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("write the cursor of %s: %w", reader, err)
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
	return s.saveCursor(ctx, "probe", cursor{}) != nil
}
