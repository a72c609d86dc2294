package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/migrations"
)

// tables describes the tables of a PostgreSQL database in a backup, referenced tables
// before those that refer to them.
type tables struct {
	Tables    []table    `json:"tables"`
	Sequences []sequence `json:"sequences"`
}

type table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// copySQL returns a COPY of the table in the direction "TO STDOUT" or "FROM STDIN".
func (t *table) copySQL(direction string) string {
	columns := make([]string, len(t.Columns))
	for i, name := range t.Columns {
		columns[i] = pgx.Identifier{name}.Sanitize()
	}
	return fmt.Sprintf("COPY %s (%s) %s", pgx.Identifier{t.Name}.Sanitize(), strings.Join(columns, ", "), direction)
}

// sequence is the state of the numbers of an identity column.
type sequence struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	Last   int64  `json:"last"`
	Called bool   `json:"called"`
}

// postgresSnapshot is a PostgreSQL database at one moment: a transaction of the level
// repeatable read, on a connection of its own: a slow backup takes none of the pool.
type postgresSnapshot struct {
	conn  *pgx.Conn
	tx    pgx.Tx
	size  int64
	state tables
}

func openPostgres(ctx context.Context, d *db.DB) (_ databaseSnapshot, state databaseState, err error) {
	s := &postgresSnapshot{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.conn, err = pgx.ConnectConfig(ctx, d.Pool().Config().ConnConfig); err != nil {
		return nil, state, err
	}
	if s.tx, err = s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err != nil {
		return nil, state, err
	}
	// A slow copy is no reason to end the transaction.
	if _, err = s.tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return nil, state, err
	}
	if state.steps, err = collect[int](ctx, s.tx, stepsSQL); err != nil {
		return nil, state, err
	}
	if state.contains(hasCursors) {
		if state.cursors, err = readCursors(ctx, s.tx); err != nil {
			return nil, state, err
		}
	}
	return s, state, s.load(ctx)
}

func collect[T any](ctx context.Context, tx pgx.Tx, query string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

func readCursors(ctx context.Context, tx pgx.Tx) ([]archive.Cursor, error) {
	rows, err := tx.Query(ctx, cursorsSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (c archive.Cursor, err error) {
		var seq int64
		err = r.Scan(&c.Name, &c.Journal, &seq)
		c.Seq = uint64(seq)
		return c, err
	})
}

// tablesSQL lists ordinary tables with their columns, identity columns and the tables
// they refer to. Generated columns are computed again.
const tablesSQL = `SELECT c.relname,
	(SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
	coalesce((SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
		WHERE a.attrelid = c.oid AND a.attidentity <> '' AND NOT a.attisdropped), '{}'),
	coalesce((SELECT array_agg(f.relname::text) FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
		WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid <> c.oid), '{}'),
	pg_table_size(c.oid)
FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname = ANY($1)
ORDER BY c.relname`

// catalogTable is a table as the catalog describes it.
type catalogTable struct {
	table
	identity, refers []string
	bytes            int64
}

// load reads the catalog.
func (s *postgresSnapshot) load(ctx context.Context) error {
	names, err := migrations.Tables(migrations.Postgres)
	if err != nil {
		return err
	}
	rows, err := s.tx.Query(ctx, tablesSQL, append(names, "schema_migrations"))
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (t catalogTable, err error) {
		return t, r.Scan(&t.Name, &t.Columns, &t.identity, &t.refers, &t.bytes)
	})
	if err != nil {
		return err
	}
	if s.state.Tables, err = sortTables(found); err != nil {
		return err
	}
	for _, t := range found {
		s.size += t.bytes
		for _, column := range t.identity {
			one := sequence{Table: t.Name, Column: column}
			var name string
			if err := s.tx.QueryRow(ctx, "SELECT pg_get_serial_sequence($1, $2)", pgx.Identifier{t.Name}.Sanitize(), column).Scan(&name); err != nil {
				return err
			}
			if err := s.tx.QueryRow(ctx, "SELECT last_value, is_called FROM "+name).Scan(&one.Last, &one.Called); err != nil {
				return err
			}
			s.state.Sequences = append(s.state.Sequences, one)
		}
	}
	return nil
}

// sortTables puts tables behind those that they refer to.
func sortTables(in []catalogTable) (out []table, err error) {
	done := map[string]bool{}
	for len(out) < len(in) {
		before := len(out)
		for _, t := range in {
			ready := !done[t.Name]
			for _, other := range t.refers {
				ready = ready && done[other]
			}
			if ready {
				out, done[t.Name] = append(out, t.table), true
			}
		}
		if len(out) == before {
			return nil, errors.New("tables refer to each other in a circle")
		}
	}
	return out, nil
}

func (s *postgresSnapshot) bytes() int64 { return s.size }

// writeTo copies the tables in the text format of COPY, which every version of
// PostgreSQL reads.
func (s *postgresSnapshot) writeTo(ctx context.Context, a *archive.Writer, through func(io.Writer) io.Writer) error {
	content, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	f := a.File(fileTables)
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		f := a.File(tablePrefix + t.Name)
		_, err := s.conn.PgConn().CopyTo(ctx, through(f), t.copySQL("TO STDOUT"))
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("copy table %s: %w", t.Name, err)
		}
	}
	return nil
}

// closeTimeout bounds the end of a connection to a server that does not answer.
const closeTimeout = time.Second

// Close ends the transaction with its connection.
func (s *postgresSnapshot) Close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing was written
}
