package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/core/db"
)

// target is a PostgreSQL database that receives the rows, on a connection of its own that
// holds a lock.
type target struct {
	db   *db.DB
	conn *pgx.Conn
}

// transferLock is the number of the advisory lock of a transfer into a database.
const transferLock = 0x677569646f6f

// errBusy reports a second transfer.
var errBusy = errors.New("another guidon migrate-data works on the target, or the last statement of an interrupted one does not end")

// lockAttempts is how often, at intervals of a quarter of a second, the lock of a transfer
// is tried: the server may notice late that an interrupted one has gone.
const lockAttempts = 60

func openTarget(ctx context.Context, d *db.DB) (*target, error) {
	conn, err := pgx.ConnectConfig(ctx, d.Pool().Config().ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", d, err)
	}
	t := &target{db: d, conn: conn}
	// A slow table is no reason to end the session.
	_, err = conn.Exec(ctx, "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0")
	if err == nil {
		// The statement of a client that has gone ends. Some systems cannot do it.
		_, _ = conn.Exec(ctx, "SET client_connection_check_interval = '1s'")
		err = t.lock(ctx)
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("prepare %s: %w", d, err)
	}
	return t, nil
}

func (t *target) lock(ctx context.Context) error {
	for range lockAttempts {
		var locked bool
		if err := t.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(transferLock)).Scan(&locked); err != nil || locked {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return errBusy
}

// Close ends the connection, and with it the lock.
func (t *target) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = t.conn.Close(ctx) // what was not committed is repeated
}

// targetTable is a table as PostgreSQL describes it.
type targetTable struct {
	columns  []column
	identity string
}

// tables reads the catalog.
func (t *target) tables(ctx context.Context) (map[string]*targetTable, error) {
	rows, err := t.conn.Query(ctx, `SELECT c.relname, a.attname, y.typname, a.attidentity <> ''
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type y ON y.oid = a.atttypid
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
			AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		ORDER BY c.relname, a.attnum`)
	if err != nil {
		return nil, err
	}
	out := map[string]*targetTable{}
	unknown := map[string]string{}
	var name, columnName, typeName string
	var identity bool
	_, err = pgx.ForEachRow(rows, []any{&name, &columnName, &typeName, &identity}, func() error {
		if out[name] == nil {
			out[name] = &targetTable{}
		}
		k, ok := kinds[typeName]
		if !ok {
			unknown[name] = columnName + " " + typeName
		}
		out[name].columns = append(out[name].columns, column{columnName, k})
		if identity {
			out[name].identity = columnName
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the tables of %s: %w", t.db, err)
	}
	for _, name := range copied {
		if u, ok := unknown[name]; ok {
			return nil, fmt.Errorf("the column %s of table %s has a type that this version cannot transfer", u, name)
		}
	}
	return out, nil
}

// firstUsed returns the name of a table that has rows which the migrations did not insert,
// "" without one.
func (t *target) firstUsed(ctx context.Context) (string, error) {
	existing, err := t.tables(ctx)
	if err != nil {
		return "", err
	}
	known, err := schemaTables()
	if err != nil {
		return "", err
	}
	for name := range existing {
		if !known[name] || leftOut[name] != "" {
			continue
		}
		condition := ""
		if fresh := seeded[name]; fresh != "" {
			condition = " WHERE NOT (" + fresh + ")"
		}
		var used bool
		if err := t.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+quote(name)+condition+")").Scan(&used); err != nil {
			return "", fmt.Errorf("read table %s of %s: %w", name, t.db, err)
		}
		if used {
			return name, nil
		}
	}
	return "", nil
}

func (p *tablePlan) copySQL() string {
	return "COPY " + quote(p.name) + " (" + quoteAll(p.columnNames()) + ") FROM STDIN (FORMAT binary)"
}

// writeBatch stores the rows of a batch, and the progress, in one transaction.
func (t *target) writeBatch(ctx context.Context, p *tablePlan, b *batch, s *tableState) error {
	b.data = append(b.data, copyTrailer...)
	err := t.inTx(ctx, func(tx pgx.Tx) error {
		if b.rows > 0 {
			if _, err := t.conn.PgConn().CopyFrom(ctx, bytes.NewReader(b.data), p.copySQL()); err != nil {
				return err
			}
		}
		return s.save(ctx, tx, p.name)
	})
	if err != nil {
		return fmt.Errorf("write table %s: %w", p.name, explain(err))
	}
	return nil
}

func (t *target) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	tx, err := t.conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback(context.WithoutCancel(ctx)) // the first error matters
		return err
	}
	return tx.Commit(ctx)
}

// explain adds to an error of PostgreSQL where it happened.
func explain(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	detail := e.Detail
	if detail == "" {
		detail, _, _ = strings.Cut(e.Where, "\n")
	}
	if detail == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, detail)
}

// checksum reads a table and returns the number of its rows and their checksum.
func (t *target) checksum(ctx context.Context, p *tablePlan) (rows int64, sum uint64, err error) {
	c := &checksummer{}
	query := "COPY (SELECT " + quoteAll(p.columnNames()) + " FROM " + quote(p.name) + ") TO STDOUT (FORMAT binary)"
	if _, err := t.conn.PgConn().CopyTo(ctx, c, query); err != nil {
		return 0, 0, fmt.Errorf("read table %s of %s: %w", p.name, t.db, err)
	}
	return c.rows, c.sum, nil
}

// setNumber makes an identity column go on behind a number.
func (t *target) setNumber(ctx context.Context, p *tablePlan, last int64) error {
	_, err := t.conn.Exec(ctx, "SELECT setval(pg_get_serial_sequence($1, $2), $3, $4)", quote(p.name), p.identity, max(last, 1), last > 0)
	if err != nil {
		return fmt.Errorf("set the numbers of %s.%s: %w", p.name, p.identity, err)
	}
	return nil
}

// identity is source.identity of the rows in the target.
func (t *target) identity(ctx context.Context) (string, error) {
	var key string
	err := t.conn.QueryRow(ctx, "SELECT key FROM erasure_key WHERE id = 1").Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("identify %s: %w", t.db, err)
	}
	return identityOf(key), nil
}
