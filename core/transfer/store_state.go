package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db"
)

// The state of a transfer is in two tables of the target, which exist until it is
// complete: the progress of each table, written with the rows, and what the transfer must
// remember: the identity and the state of the source, and the indexes to create again.
const (
	createState = `
		CREATE TABLE data_transfer_tables (
			name TEXT PRIMARY KEY, last_key TEXT NOT NULL, rows BIGINT NOT NULL, skipped BIGINT NOT NULL,
			replaced BIGINT NOT NULL, checksum BIGINT NOT NULL, done BOOLEAN NOT NULL);
		CREATE TABLE data_transfer_notes (name TEXT PRIMARY KEY, value TEXT NOT NULL)`
	dropState = `DROP TABLE data_transfer_tables, data_transfer_notes`
	saveState = `INSERT INTO data_transfer_tables (name, last_key, rows, skipped, replaced, checksum, done)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO UPDATE SET last_key = excluded.last_key, rows = excluded.rows,
		skipped = excluded.skipped, replaced = excluded.replaced, checksum = excluded.checksum, done = excluded.done`
)

// Names of notes. The definition of an index is under the prefix and its name.
const (
	noteIdentity = "identity"
	noteSource   = "source"
	noteIndex    = "index/"
)

// tableState is the progress of a table.
type tableState struct {
	last     rowKey
	rows     int64 // in the target
	skipped  int64 // left out because they are broken
	replaced int64 // texts that were changed
	sum      uint64
	done     bool
}

func (s *tableState) save(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, saveState, name, s.last.encode(), s.rows, s.skipped, s.replaced, int64(s.sum), s.done)
	return err
}

// saveState saves the progress of a table without rows.
func (t *target) saveState(ctx context.Context, name string, s *tableState) error {
	if err := t.inTx(ctx, func(tx pgx.Tx) error { return s.save(ctx, tx, name) }); err != nil {
		return fmt.Errorf("save the progress of table %s: %w", name, err)
	}
	return nil
}

// unfinished reports whether the target has the state of a transfer.
func (t *target) unfinished(ctx context.Context) (yes bool, err error) {
	err = t.conn.QueryRow(ctx, "SELECT to_regclass('data_transfer_notes') IS NOT NULL").Scan(&yes)
	return yes, err
}

// begin creates the state of a transfer, and the mark that keeps servers from starting on
// the target, and deletes the rows that the migrations have inserted.
func (t *target) begin(ctx context.Context, notes map[string]string) error {
	err := t.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, createState); err != nil {
			return err
		}
		for name, value := range notes {
			if _, err := tx.Exec(ctx, "INSERT INTO data_transfer_notes (name, value) VALUES ($1, $2)", name, value); err != nil {
				return err
			}
		}
		for name := range seeded {
			if _, err := tx.Exec(ctx, "DELETE FROM "+quote(name)); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, "INSERT INTO schema_migrations (number, name, applied_at) VALUES ($1, 'unfinished_data_transfer', 0)", db.TransferMark)
		return err
	})
	if err != nil {
		return fmt.Errorf("begin the transfer into %s: %w", t.db, explain(err))
	}
	return nil
}

// notes returns what a transfer remembers.
func (t *target) notes(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	rows, err := t.conn.Query(ctx, "SELECT name, value FROM data_transfer_notes")
	if err != nil {
		return nil, err
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		out[name] = value
		return nil
	})
	return out, err
}

// state returns the progress of a table.
func (t *target) state(ctx context.Context, name string) (*tableState, error) {
	s := &tableState{}
	var last string
	var sum int64
	err := t.conn.QueryRow(ctx, "SELECT last_key, rows, skipped, replaced, checksum, done FROM data_transfer_tables WHERE name = $1", name).
		Scan(&last, &s.rows, &s.skipped, &s.replaced, &sum, &s.done)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the progress of table %s: %w", name, err)
	}
	s.sum = uint64(sum)
	s.last, err = decodeKey(last)
	return s, err
}

// restart deletes what an unfinished transfer has written, and its state. It can be
// interrupted and repeated.
func (t *target) restart(ctx context.Context) error {
	names := make([]string, len(copied))
	for i, name := range copied {
		names[i] = quote(name)
	}
	err := t.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "TRUNCATE "+strings.Join(names, ", ")); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM data_transfer_tables")
		return err
	})
	if err == nil {
		err = t.createIndexes(ctx)
	}
	if err == nil {
		err = t.inTx(ctx, func(tx pgx.Tx) error { return dropStateIn(ctx, tx) })
	}
	if err != nil {
		return fmt.Errorf("empty %s: %w", t.db, explain(err))
	}
	return nil
}

func dropStateIn(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, dropState); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "DELETE FROM schema_migrations WHERE number = $1", db.TransferMark)
	return err
}

// finish removes the state and the mark: servers may start on the target.
func (t *target) finish(ctx context.Context) error {
	if err := t.inTx(ctx, func(tx pgx.Tx) error { return dropStateIn(ctx, tx) }); err != nil {
		return fmt.Errorf("finish the transfer: %w", err)
	}
	return nil
}

// setAside drops the indexes of a table that are no constraints, and remembers them:
// indexes are made faster, and smaller, when the rows are there. A second call finds none.
func (t *target) setAside(ctx context.Context, table string) error {
	err := t.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT c.relname, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE i.indrelid = $1::regclass AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)`, quote(table))
		if err != nil {
			return err
		}
		found := map[string]string{}
		var name, definition string
		if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
			found[name] = definition
			return nil
		}); err != nil {
			return err
		}
		for name, definition := range found {
			if _, err := tx.Exec(ctx, "INSERT INTO data_transfer_notes (name, value) VALUES ($1, $2)", noteIndex+name, definition); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "DROP INDEX "+quote(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("set the indexes of %s aside: %w", table, err)
	}
	return nil
}

// createIndexes creates the indexes that were set aside. An interruption loses the one
// that is being created, which the next call creates.
func (t *target) createIndexes(ctx context.Context) error {
	notes, err := t.notes(ctx)
	if err != nil {
		return err
	}
	for name, definition := range notes {
		if !strings.HasPrefix(name, noteIndex) {
			continue
		}
		err := t.inTx(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL maintenance_work_mem = '128MB'; "+definition); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "DELETE FROM data_transfer_notes WHERE name = $1", name)
			return err
		})
		if err != nil {
			return fmt.Errorf("create the index %s: %w", strings.TrimPrefix(name, noteIndex), explain(err))
		}
	}
	return nil
}
