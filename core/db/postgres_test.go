package db_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// copyNotes copies two rows in by COPY.
func copyNotes(ctx context.Context, d *db.DB) error {
	return d.PgxConn(ctx, func(c *pgx.Conn) error {
		n, err := c.CopyFrom(ctx, pgx.Identifier{"notes"}, []string{"id"}, pgx.CopyFromRows([][]any{{11}, {12}}))
		if err == nil && n != 2 {
			return errors.New("copied other than two rows")
		}
		return err
	})
}

func TestCopyIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE notes (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		if err := errors.Join(note(ctx, d, 1), copyNotes(ctx, d), note(ctx, d, 2)); err != nil {
			return err
		}
		if n := notes(ctx, t, d); n != 4 {
			t.Errorf("%d notes inside", n)
		}
		return no
	})
	if !errors.Is(err, no) || notes(t.Context(), t, d) != 0 {
		t.Fatalf("%v: %d notes survive a rolled back COPY", err, notes(t.Context(), t, d))
	}
	if err := d.Tx(t.Context(), func(ctx context.Context) error { return copyNotes(ctx, d) }); err != nil {
		t.Fatal(err)
	}
	if n := notes(t.Context(), t, d); n != 2 {
		t.Fatalf("%d notes after a committed COPY", n)
	}
}

func TestCopyWithoutATransaction(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE notes (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	if err := copyNotes(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if n := notes(t.Context(), t, d); n != 2 {
		t.Fatalf("%d notes", n)
	}
}

func TestPgxConnOnSQLite(t *testing.T) {
	t.Parallel()
	if err := copyNotes(t.Context(), dbtest.SQLite(t)); !errors.Is(err, db.ErrNotPostgres) {
		t.Fatalf("got %v", err)
	}
}

// TestDeadlockIsRetryable lets two transactions each lock a row, waits until both are
// locked, and then lets each ask for the row of the other.
func TestDeadlockIsRetryable(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	ctx := t.Context()
	if _, err := d.Write(ctx).ExecContext(ctx, "CREATE TABLE notes (id INTEGER PRIMARY KEY); INSERT INTO notes VALUES (1), (2)"); err != nil {
		t.Fatal(err)
	}
	lock := func(ctx context.Context, id int) error {
		_, err := d.Write(ctx).ExecContext(ctx, "UPDATE notes SET id = id WHERE id = ?", id)
		return err
	}
	var bothHold sync.WaitGroup
	bothHold.Add(2)
	cross := func(own, other int) error {
		return d.Tx(ctx, func(ctx context.Context) error {
			err := lock(ctx, own)
			bothHold.Done()
			if err != nil {
				return err
			}
			bothHold.Wait()
			return lock(ctx, other)
		})
	}
	failed := make(chan error, 1)
	go func() { failed <- cross(2, 1) }()
	err := cross(1, 2)
	if err = errors.Join(err, <-failed); !db.Retryable(err) {
		t.Fatalf("got %v, want a deadlock", err)
	}
}

// Tables of a new database have no statistics: the server would compile short statements.
func TestStatementsAreNotCompiled(t *testing.T) {
	t.Parallel()
	address := dbtest.PostgresURL(t)
	for suffix, want := range map[string]string{"": "off client", "&jit=on": "on client", "&options=-c%20jit%3Don": "on client"} {
		d, err := db.Open(t.Context(), db.Config{URL: address + suffix}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var setting, source string
		if err := d.Pool().QueryRow(t.Context(), "SELECT setting, source FROM pg_settings WHERE name = 'jit'").Scan(&setting, &source); err != nil {
			t.Fatal(err)
		}
		if got := setting + " " + source; got != want {
			t.Errorf("jit with %q: got %s, want %s", suffix, got, want)
		}
	}
}
