package persons

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db"
)

const (
	readPerson = `SELECT p.id, p.properties FROM person_distinct_ids d JOIN persons p ON p.id = d.person_id
		WHERE d.project_id = $1 AND d.distinct_id = $2`
	readGroup = `SELECT 0, properties FROM project_groups WHERE project_id = $1 AND slot = $2 AND group_key = $3`
)

// preparedRead is a query that runs for every request. It is raw SQL, prepared
// once on SQLite and by the statement cache of the pool on PostgreSQL, because
// building it takes longer than running it. In a transaction it reads there.
type preparedRead struct {
	query string
	mu    sync.Mutex
	stmt  *sql.Stmt
}

func (h *preparedRead) properties(ctx context.Context, d *db.DB, args ...any) (entry, error) {
	var c entry
	var properties string
	err := h.row(ctx, d, args...).Scan(&c.person, &properties)
	switch {
	case errors.Is(err, sql.ErrNoRows) || errors.Is(err, pgx.ErrNoRows):
		return entry{}, nil
	case err != nil:
		return entry{}, err
	}
	c.properties, c.found = []byte(properties), true
	return c, nil
}

// oneRow is a row of either driver.
type oneRow interface{ Scan(dest ...any) error }

type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

func (h *preparedRead) row(ctx context.Context, d *db.DB, args ...any) oneRow {
	if tx := d.SQLTx(ctx); tx != nil {
		return tx.QueryRowContext(ctx, h.query, args...)
	}
	if pool := d.Pool(); pool != nil {
		return pool.QueryRow(ctx, h.query, args...)
	}
	if err := h.prepare(ctx, d); err != nil {
		return failed{err}
	}
	return h.stmt.QueryRowContext(ctx, args...)
}

// prepare prepares the statement once; it is closed with the database.
func (h *preparedRead) prepare(ctx context.Context, d *db.DB) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stmt == nil {
		h.stmt, err = d.LookupDB().PrepareContext(ctx, h.query)
	}
	return err
}

func (s *store) properties(ctx context.Context, projectID int64, distinctID string) (entry, error) {
	return s.person.properties(ctx, s.db, projectID, distinctID)
}

func (s *store) groupProperties(ctx context.Context, projectID int64, slot int, key string) (entry, error) {
	return s.group.properties(ctx, s.db, projectID, slot, key)
}
