package db_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/db"
)

const insertNote = "INSERT INTO notes (id, text) VALUES (?, ?)"

func openNotes(t *testing.T) *db.DB {
	t.Helper()
	d := openAt(t, "sqlite:"+filepath.Join(t.TempDir(), "notes.db"))
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		t.Fatal(err)
	}
	return d
}

// A statement with arguments is parsed once, in whichever way it is executed.
func TestStatementsAreKept(t *testing.T) {
	d := openNotes(t)
	add := func(id int) {
		t.Helper()
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			if _, err := d.SQLTx(ctx).ExecContext(ctx, insertNote, id, "plain"); err != nil {
				return err
			}
			stmt, err := d.SQLTx(ctx).PrepareContext(ctx, insertNote)
			if err != nil {
				return err
			}
			defer func() { _ = stmt.Close() }()
			_, err = stmt.ExecContext(ctx, id+1, "prepared")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(1)
	add(3)
	kept, err := d.KeptStatements(t.Context())
	if err != nil || len(kept) != 1 || kept[0] != insertNote {
		t.Errorf("kept %q, %v", kept, err)
	}
}

// A kept statement works after a failure of an execution, after a change of the
// schema, and while its rows are open.
func TestKeptStatementsStayCorrect(t *testing.T) {
	d := openNotes(t)
	const find = "SELECT * FROM notes WHERE id >= ? ORDER BY id"
	open := func(ctx context.Context, from int) error {
		rows, err := d.SQLTx(ctx).QueryContext(ctx, find, from)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		return rows.Err()
	}
	count := func() (n, columns int) {
		t.Helper()
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			rows, err := d.SQLTx(ctx).QueryContext(ctx, find, 0)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			names, err := rows.Columns()
			if err != nil {
				return err
			}
			columns = len(names)
			for rows.Next() {
				n++
				var inner int // the same text while the outer rows are open
				if err := d.SQLTx(ctx).QueryRowContext(ctx, "SELECT count(*) FROM notes WHERE id >= ?", 0).Scan(&inner); err != nil {
					return err
				}
				if err := open(ctx, n); err != nil {
					return err
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		return n, columns
	}
	insert := func(id int) error {
		return d.Tx(t.Context(), func(ctx context.Context) error {
			_, err := d.SQLTx(ctx).ExecContext(ctx, insertNote, id, "x")
			return err
		})
	}
	if err := insert(1); err != nil {
		t.Fatal(err)
	}
	if err := insert(1); err == nil {
		t.Error("a repeated key was accepted")
	}
	if err := insert(2); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	if n, columns := count(); n != 2 || columns != 2 {
		t.Errorf("%d rows of %d columns", n, columns)
	}
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "ALTER TABLE notes ADD COLUMN more TEXT"); err != nil {
		t.Fatal(err)
	}
	if n, columns := count(); n != 2 || columns != 3 {
		t.Errorf("after a change of the schema: %d rows of %d columns", n, columns)
	}
}

// Texts that hold their values are not kept at their first execution, and the number
// of kept statements is bounded.
func TestKeptStatementsAreBounded(t *testing.T) {
	d := openNotes(t)
	exec := func(query string, args ...any) {
		t.Helper()
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			_, err := d.SQLTx(ctx).ExecContext(ctx, query, args...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		exec(fmt.Sprintf("INSERT INTO notes (id) VALUES (%d)", i))
	}
	if kept, err := d.KeptStatements(t.Context()); err != nil || len(kept) != 0 {
		t.Errorf("kept %q, %v", kept, err)
	}
	for range 2 {
		exec("DELETE FROM notes")
	}
	for i := range 2 * db.MaxStatements {
		exec(fmt.Sprintf("INSERT INTO notes (id, text) VALUES (?, '%d')", i), i)
	}
	kept, err := d.KeptStatements(t.Context())
	if err != nil || len(kept) != db.MaxStatements {
		t.Errorf("%d statements kept, %v", len(kept), err)
	}
	if slices.Contains(kept, "DELETE FROM notes") {
		t.Error("the least recently used statement is kept")
	}
}
