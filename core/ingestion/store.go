package ingestion

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// store is the SQL of the room. Its methods work in the transaction of their
// context when there is one.
type store struct{ db *db.DB }

// tx runs fn in a transaction.
func (s *store) tx(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.db.Tx(ctx, fn)
}

// cursor is how far a reader had come when its last transaction committed, and
// in which journal.
type cursor struct {
	journal  string
	position journal.Position
}

// cursor returns the reader's cursor; false when it has none.
func (s *store) cursor(ctx context.Context, name string) (c cursor, ok bool, err error) {
	var row struct {
		Journal         string
		Seq, Idx, Count int64
	}
	err = s.db.Read(ctx).NewRaw("SELECT journal, seq, idx, count FROM ingestion_cursors WHERE name = ?", name).Scan(ctx, &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return cursor{}, false, nil
	case err != nil:
		return cursor{}, false, fmt.Errorf("read the cursor of %s: %w", name, err)
	}
	p := journal.Position{Seq: uint64(row.Seq), Index: uint32(row.Idx), Count: uint64(row.Count)}
	return cursor{row.Journal, p}, true, nil
}

// saveCursor writes the reader's cursor.
func (s *store) saveCursor(ctx context.Context, name string, c cursor) error {
	_, err := s.db.Write(ctx).NewRaw(`
		INSERT INTO ingestion_cursors (name, journal, seq, idx, count, updated_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET journal = excluded.journal, seq = excluded.seq, idx = excluded.idx,
			count = excluded.count, updated_at = excluded.updated_at`,
		name, c.journal, int64(c.position.Seq), int64(c.position.Index), int64(c.position.Count), time.Now().UnixMicro()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write the cursor of %s: %w", name, err)
	}
	return nil
}

// probe reports whether the database takes a small transaction right now.
func (s *store) probe(ctx context.Context) error {
	return s.saveCursor(ctx, "probe", cursor{})
}

// retryable reports whether the database asks for the transaction again.
func retryable(err error) bool { return db.Retryable(err) }
