package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// Steps are run here rather than by bun/migrate: there a step and the mark that
// it was done are two transactions, and the lock is a row that a killed process
// leaves behind. Here the mark commits with the step, and the lock goes with
// the connection.

// migrationLock is the number of the advisory lock that migrating processes
// take on PostgreSQL.
const migrationLock = 0x677569646f6e // "guidon"

// migrating runs fn on a connection of its own. On SQLite foreign keys are not
// enforced there, because a table is changed by dropping and rebuilding it, and
// a drop would empty the tables that point at it; inStep checks them instead.
func (d *DB) migrating(ctx context.Context, fn func(*sql.Conn) error) error {
	conn, err := d.write.DB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to migrate: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if d.Postgres() {
		if d.waiting != nil {
			d.waiting.migrating.Store(true)
			defer d.waiting.migrating.Store(false)
		}
		return fn(conn)
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
		return fmt.Errorf("prepare to migrate: %w", err)
	}
	err = fn(conn)
	// A connection that keeps foreign keys off must not go back into the pool.
	if _, on := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA foreign_keys = ON"); on != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// inStep runs fn in a transaction that no other migrating process shares.
func (d *DB) inStep(ctx context.Context, conn *sql.Conn, fn func(*sql.Tx) (bool, error)) (more bool, err error) {
	var tx *sql.Tx
	// On SQLite the transaction begins with the write lock. Another process
	// may hold it for as long as its step takes.
	err = whileBusy(ctx, time.Hour, func() error {
		tx, err = conn.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("begin migration: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := d.lockSteps(ctx, tx); err != nil {
		return false, err
	}
	if more, err = fn(tx); err != nil {
		return false, err
	}
	if err := d.checkReferences(ctx, tx); err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("commit migration: %w", err)
	}
	return more, nil
}

func (d *DB) lockSteps(ctx context.Context, tx *sql.Tx) error {
	if d.Postgres() {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", migrationLock)); err != nil {
			return fmt.Errorf("lock migrations: %w", err)
		}
	}
	_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (
		number     INTEGER PRIMARY KEY,
		name       TEXT    NOT NULL,
		applied_at BIGINT  NOT NULL
	)`)
	if err != nil {
		return fmt.Errorf("create the table of migrations: %w", err)
	}
	return nil
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// applied returns the marks by number; none when the table is not there yet.
func (d *DB) applied(ctx context.Context, q querier) (map[int]StepStatus, error) {
	exists := "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'"
	if d.Postgres() {
		exists = "SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL"
	}
	out := map[int]StepStatus{}
	found, err := rows(ctx, q, exists, nil)
	if err != nil || found == 0 {
		return out, err
	}
	_, err = rows(ctx, q, "SELECT number, name, applied_at FROM schema_migrations", func(r *sql.Rows) error {
		var s StepStatus
		var at int64
		if err := r.Scan(&s.Number, &s.Name, &at); err != nil {
			return err
		}
		s.AppliedAt = time.UnixMicro(at)
		out[s.Number] = s
		return nil
	})
	return out, err
}

// rows calls each, which may be nil, for every row and returns their number.
func rows(ctx context.Context, q querier, query string, each func(*sql.Rows) error) (n int, err error) {
	r, err := q.QueryContext(ctx, query)
	if err != nil {
		return 0, fmt.Errorf("read applied migrations: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for ; r.Next(); n++ {
		if each == nil {
			continue
		}
		if err := each(r); err != nil {
			return n, fmt.Errorf("read applied migrations: %w", err)
		}
	}
	return n, r.Err()
}

// checkReferences fails when a step left a row on SQLite that points nowhere.
func (d *DB) checkReferences(ctx context.Context, tx *sql.Tx) error {
	if d.Postgres() {
		return nil // enforced all the time
	}
	n, err := rows(ctx, tx, "PRAGMA foreign_key_check", nil)
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("migration leaves %d rows that refer to rows which do not exist; nothing was changed (if the file may be damaged, %s)", n, whatToDo)
	}
	return nil
}
