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

// hot is a read that happens for every request: prepared once on SQLite, left
// to the statement cache of the pool on Postgres, read inside the transaction
// of the context when there is one.
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

// prepare prepares the statement once; it closes with the database.
func (h *preparedRead) prepare(ctx context.Context, d *db.DB) (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stmt == nil {
		h.stmt, err = d.ReadDB().PrepareContext(ctx, h.query)
	}
	return err
}

func (s *store) properties(ctx context.Context, projectID int64, distinctID string) (entry, error) {
	return s.person.properties(ctx, s.db, projectID, distinctID)
}

func (s *store) groupProperties(ctx context.Context, projectID int64, slot int, key string) (entry, error) {
	return s.group.properties(ctx, s.db, projectID, slot, key)
}
