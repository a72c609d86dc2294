package backup

import (
	"context"
	"database/sql"
	"errors"
	"io"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/db"
)

// sqliteSnapshot is a SQLite database at one moment.
type sqliteSnapshot struct{ *pageSnapshot }

func openSQLite(ctx context.Context, d *db.DB) (databaseSnapshot, databaseState, error) {
	pages, err := openPages(ctx, d.File())
	if err != nil {
		return nil, databaseState{}, err
	}
	state, err := pages.databaseState(ctx)
	if err != nil {
		pages.Close()
		return nil, state, err
	}
	return &sqliteSnapshot{pages}, state, nil
}

func (s *sqliteSnapshot) writeTo(ctx context.Context, a *archive.Writer, through func(io.Writer) io.Writer) error {
	f := a.File(fileDatabase)
	return errors.Join(s.copyTo(ctx, through(f)), f.Close())
}

// Reads of the state, on both databases.
const (
	stepsSQL   = "SELECT number FROM schema_migrations ORDER BY number"
	cursorsSQL = "SELECT name, journal, seq FROM ingestion_cursors WHERE journal <> '' ORDER BY name"
)

// hasCursors is the step of the schema that has created ingestion_cursors.
const hasCursors = 40

// databaseState reads the applied steps and the cursors.
func (s *pageSnapshot) databaseState(ctx context.Context) (state databaseState, err error) {
	rows, err := s.tx.QueryContext(ctx, stepsSQL)
	if err != nil {
		return state, err
	}
	if state.steps, err = scanRows(rows, func(n *int) []any { return []any{n} }); err != nil || !state.contains(hasCursors) {
		return state, err
	}
	if rows, err = s.tx.QueryContext(ctx, cursorsSQL); err != nil {
		return state, err
	}
	state.cursors, err = scanRows(rows, func(c *archive.Cursor) []any { return []any{&c.Name, &c.Journal, &c.Seq} })
	return state, err
}

// scanRows reads all rows into values whose fields columns returns.
func scanRows[T any](rows *sql.Rows, columns func(*T) []any) ([]T, error) {
	defer func() { _ = rows.Close() }()
	out := []T{}
	for rows.Next() {
		var one T
		if err := rows.Scan(columns(&one)...); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, rows.Err()
}
