package db_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// runNotes is dbtest.Run with a table to write into.
func runNotes(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE notes (id INTEGER PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		fn(t, d)
	})
}

func note(ctx context.Context, d *db.DB, id int) error {
	_, err := d.Write(ctx).ExecContext(ctx, "INSERT INTO notes (id) VALUES (?)", id)
	return err
}

// notes counts the rows that ctx sees.
func notes(ctx context.Context, t *testing.T, d *db.DB) (n int) {
	t.Helper()
	if err := d.Read(ctx).QueryRowContext(ctx, "SELECT count(*) FROM notes").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTx(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	cases := map[string]struct {
		fn    func(ctx context.Context, t *testing.T, d *db.DB) error
		want  error
		notes int
	}{
		"nil commits": {
			fn:    func(ctx context.Context, _ *testing.T, d *db.DB) error { return note(ctx, d, 1) },
			notes: 1,
		},
		"an error rolls back and is returned as it is": {
			fn: func(ctx context.Context, _ *testing.T, d *db.DB) error {
				return errors.Join(note(ctx, d, 1), no)
			},
			want: no,
		},
		"its own writes are read inside, not outside": {
			fn: func(ctx context.Context, t *testing.T, d *db.DB) error {
				err := note(ctx, d, 1)
				if in, out := notes(ctx, t, d), notes(context.Background(), t, d); in != 1 || out != 0 {
					t.Errorf("%d notes inside, %d outside", in, out)
				}
				return err
			},
			notes: 1,
		},
		"an inner one joins and commits with the outer": {
			fn: func(ctx context.Context, t *testing.T, d *db.DB) error {
				err := d.Tx(ctx, func(ctx context.Context) error { return note(ctx, d, 1) })
				if n := notes(context.Background(), t, d); n != 0 {
					t.Errorf("%d notes are committed before the outer returns", n)
				}
				return errors.Join(err, note(ctx, d, 2))
			},
			notes: 2,
		},
		"an inner one goes with the outer's error": {
			fn: func(ctx context.Context, _ *testing.T, d *db.DB) error {
				return errors.Join(d.Tx(ctx, func(ctx context.Context) error { return note(ctx, d, 1) }), no)
			},
			want: no,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runNotes(t, func(t *testing.T, d *db.DB) {
				err := d.Tx(t.Context(), func(ctx context.Context) error { return c.fn(ctx, t, d) })
				if !errors.Is(err, c.want) || (c.want == nil && err != nil) {
					t.Fatalf("got %v, want %v", err, c.want)
				}
				if n := notes(t.Context(), t, d); n != c.notes {
					t.Fatalf("%d notes, want %d", n, c.notes)
				}
			})
		})
	}
}

func TestPanicRollsBackAndGoesOn(t *testing.T) {
	t.Parallel()
	runNotes(t, func(t *testing.T, d *db.DB) {
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = d.Tx(t.Context(), func(ctx context.Context) error {
				if err := note(ctx, d, 1); err != nil {
					t.Error(err)
				}
				panic("boom")
			})
		}()
		if n := notes(t.Context(), t, d); n != 0 {
			t.Fatalf("%d notes after a panic", n)
		}
		if err := note(t.Context(), d, 2); err != nil {
			t.Fatalf("the connection is not usable after a panic: %v", err)
		}
	})
}

func TestCancelledContextRollsBack(t *testing.T) {
	t.Parallel()
	runNotes(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		err := d.Tx(ctx, func(ctx context.Context) error {
			err := note(ctx, d, 1)
			cancel()
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if n := notes(t.Context(), t, d); n != 0 {
			t.Fatalf("%d notes after cancellation", n)
		}
	})
}

// The commit races with the rollback that database/sql starts when the context
// ends. In either order the caller gets the error of the context.
func TestCommitAfterTheRollbackSaysWhy(t *testing.T) {
	t.Parallel()
	runNotes(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		err := d.Tx(ctx, func(ctx context.Context) error {
			err := note(ctx, d, 1)
			cancel()
			for d.Read(ctx).QueryRowContext(context.Background(), "SELECT 1").Scan(new(int)) == nil {
				runtime.Gosched() // until the transaction is over
			}
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestTransactionsOfTwoStoresAreTheirOwn(t *testing.T) {
	t.Parallel()
	a, b := dbtest.SQLite(t), dbtest.SQLite(t)
	_ = a.Tx(t.Context(), func(ctx context.Context) error {
		if _, err := b.Write(ctx).ExecContext(ctx, "CREATE TABLE notes (id INTEGER)"); err != nil {
			t.Error(err)
		}
		return errors.New("roll back a")
	})
	if n := notes(t.Context(), t, b); n != 0 {
		t.Fatal("b has notes")
	}
}

func TestAfterCommit(t *testing.T) {
	t.Parallel()
	runNotes(t, func(t *testing.T, d *db.DB) {
		var said []string
		say := func(s string) func() { return func() { said = append(said, s) } }
		d.AfterCommit(t.Context(), say("at once"))
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			d.AfterCommit(ctx, func() {
				said = append(said, "committed")
				if n := notes(context.Background(), t, d); n != 1 {
					t.Errorf("%d notes are committed", n)
				}
			})
			return d.Tx(ctx, func(ctx context.Context) error {
				d.AfterCommit(ctx, say("in order"))
				return note(ctx, d, 1)
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = d.Tx(t.Context(), func(ctx context.Context) error {
			d.AfterCommit(ctx, say("never"))
			return errors.New("no")
		})
		if want := []string{"at once", "committed", "in order"}; !slices.Equal(said, want) {
			t.Fatalf("got %q, want %q", said, want)
		}
	})
}

func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	runNotes(t, func(t *testing.T, d *db.DB) {
		const writers, each = 4, 10
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					err := d.Tx(t.Context(), func(ctx context.Context) error { return note(ctx, d, w*each+i) })
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := notes(t.Context(), t, d); n != writers*each {
			t.Fatalf("%d notes, want %d", n, writers*each)
		}
	})
}

func TestConstraintErrorsAreClassified(t *testing.T) {
	t.Parallel()
	runNotes(t, func(t *testing.T, d *db.DB) {
		exec := func(q string) error { _, err := d.Write(t.Context()).ExecContext(t.Context(), q); return err }
		if err := errors.Join(exec("INSERT INTO notes (id) VALUES (1)"),
			exec("CREATE TABLE pages (note INTEGER REFERENCES notes (id), word TEXT UNIQUE)"),
			exec("INSERT INTO pages (note, word) VALUES (1, 'a')")); err != nil {
			t.Fatal(err)
		}
		if err := exec("INSERT INTO notes (id) VALUES (1)"); !db.Duplicate(err) || db.BrokenReference(err) {
			t.Errorf("a primary key twice: %v", err)
		}
		if err := exec("INSERT INTO pages (note, word) VALUES (1, 'a')"); !db.Duplicate(err) {
			t.Errorf("a unique value twice: %v", err)
		}
		if err := exec("INSERT INTO pages (note) VALUES (7)"); !db.BrokenReference(err) || db.Duplicate(err) {
			t.Errorf("a reference to nothing: %v", err)
		}
		if err := exec("DELETE FROM notes"); !db.BrokenReference(err) || db.Retryable(err) {
			t.Errorf("a row that is pointed at: %v", err)
		}
	})
}
