package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guidonhq/guidon/core/db"
)

// contentTables are tables of which one holds rows in each database that was used.
var contentTables = []string{"organizations", "users", "projects", "events", "ingestion_cursors"}

// postgresContent returns the name of the database that c names if it holds data.
func postgresContent(ctx context.Context, c db.Config) (string, error) {
	d, err := db.Open(ctx, c, "")
	if err != nil {
		return "", err
	}
	defer func() { _ = d.Close() }()
	for _, name := range contentTables {
		var exists, some bool
		if err := d.Pool().QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", name).Scan(&exists); err != nil {
			return "", err
		}
		if !exists {
			continue
		}
		if err := d.Pool().QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+name+")").Scan(&some); err != nil || some {
			return d.String(), err
		}
	}
	return "", nil
}

// postgresLoad writes the tables of a backup in one transaction.
type postgresLoad struct {
	db    *db.DB
	conn  *pgxpool.Conn
	tx    pgx.Tx
	state tables
	name  string // of the table that is being copied
	pipe  *io.PipeWriter
	done  chan error
}

// openLoad creates the schema of the backup with empty tables and begins the
// transaction. The tables that the target has are deleted.
func openLoad(ctx context.Context, c db.Config, steps []int, state tables) (_ *postgresLoad, err error) {
	l := &postgresLoad{state: state}
	defer func() {
		if err != nil {
			l.Abort()
		}
	}()
	if l.db, err = db.Open(ctx, c, ""); err != nil {
		return nil, err
	}
	if err := l.db.RebuildTo(ctx, steps); err != nil {
		return nil, err
	}
	if l.conn, err = l.db.Pool().Acquire(ctx); err != nil {
		return nil, err
	}
	if l.tx, err = l.conn.Begin(ctx); err != nil {
		return nil, err
	}
	if _, err := l.tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return nil, err
	}
	names := make([]string, len(state.Tables))
	for i, t := range state.Tables {
		names[i] = pgx.Identifier{t.Name}.Sanitize()
	}
	_, err = l.tx.Exec(ctx, "TRUNCATE "+strings.Join(names, ", "))
	return l, err
}

// tablePart adds a part of the tables.
func (e *extraction) tablePart(ctx context.Context, file string, content []byte) error {
	if file == fileTables {
		var state tables
		if err := json.Unmarshal(content, &state); err != nil {
			return err
		}
		err := e.r.markIncomplete()
		if err != nil {
			return err
		}
		e.load, err = openLoad(ctx, e.r.Database, e.r.m.Steps, state)
		return err
	}
	if e.load == nil {
		return errors.New("the backup has no list of its tables")
	}
	return e.load.part(ctx, strings.TrimPrefix(file, tablePrefix), content)
}

// part adds rows to a table.
func (l *postgresLoad) part(ctx context.Context, name string, content []byte) error {
	if name != l.name {
		if err := l.beginTable(ctx, name); err != nil {
			return err
		}
	}
	if _, err := l.pipe.Write(content); err != nil {
		return fmt.Errorf("write table %s: %w", name, err)
	}
	return nil
}

func (l *postgresLoad) beginTable(ctx context.Context, name string) error {
	if err := l.endTable(); err != nil {
		return err
	}
	for i := range l.state.Tables {
		t := &l.state.Tables[i]
		if t.Name != name {
			continue
		}
		r, w := io.Pipe()
		l.name, l.pipe, l.done = name, w, make(chan error, 1)
		go func() {
			_, err := l.conn.Conn().PgConn().CopyFrom(ctx, r, t.copySQL("FROM STDIN"))
			_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // a writer gets the reason
			l.done <- err
		}()
		return nil
	}
	return fmt.Errorf("the table %s of the backup is not in its list", name)
}

// endTable waits until a table is written.
func (l *postgresLoad) endTable() error {
	if l.pipe == nil {
		return nil
	}
	_ = l.pipe.Close() // never fails
	l.pipe = nil
	if err := <-l.done; err != nil {
		return fmt.Errorf("write table %s: %w", l.name, err)
	}
	return nil
}

// commit sets the sequences and commits.
func (l *postgresLoad) commit(ctx context.Context) error {
	for _, s := range l.state.Sequences {
		_, err := l.tx.Exec(ctx, "SELECT setval(pg_get_serial_sequence($1, $2), $3, $4)", pgx.Identifier{s.Table}.Sanitize(), s.Column, s.Last, s.Called)
		if err != nil {
			return fmt.Errorf("set the numbers of %s.%s: %w", s.Table, s.Column, err)
		}
	}
	if err := l.tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit the restored tables: %w", err)
	}
	if _, err := l.db.Pool().Exec(ctx, "ANALYZE"); err != nil {
		return fmt.Errorf("analyze the restored tables: %w", err)
	}
	return nil
}

// Abort ends the load. What was not committed is not in the database.
func (l *postgresLoad) Abort() {
	if l.pipe != nil {
		_ = l.pipe.CloseWithError(errors.New("the restore was ended")) // never fails
		<-l.done                                                       //nolint:errcheck // the error is that of the pipe
		l.pipe = nil
	}
	if l.tx != nil {
		_ = l.tx.Rollback(context.Background()) // fails after a commit
	}
	if l.conn != nil {
		l.conn.Release()
		l.conn = nil
	}
	if l.db != nil {
		_ = l.db.Close()
		l.db = nil
	}
}
