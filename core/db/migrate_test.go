package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/migrations"
)

// runEmpty is dbtest.RunEmptyURL with the store opened.
func runEmpty(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	dbtest.RunEmptyURL(t, func(t *testing.T, url string) { fn(t, openAt(t, url)) })
}

func openAt(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: url}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// step makes table t<number> and takes it away.
func step(number int) migrations.Step {
	return migrations.Step{
		Number: number, Name: "t",
		Up:   fmt.Sprintf("CREATE TABLE t%d (id INTEGER PRIMARY KEY); INSERT INTO t%d (id) VALUES (1);", number, number),
		Down: fmt.Sprintf("DROP TABLE t%d;", number),
	}
}

func exec(t *testing.T, d *db.DB, query string) {
	t.Helper()
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, d *db.DB, table string) (n int) {
	t.Helper()
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryStepGoesUpDownAndUpAgain(t *testing.T) {
	t.Parallel()
	runEmpty(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		if current, known, err := d.Version(ctx); err != nil || current != 0 || known == 0 {
			t.Fatalf("an empty database is at %d of %d, %v", current, known, err)
		}
		for range 2 {
			if err := d.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			current, known, err := d.Version(ctx)
			if err != nil || current != known {
				t.Fatalf("at %d of %d, %v", current, known, err)
			}
			if err := d.Revert(ctx, 10_000); err != nil {
				t.Fatal(err)
			}
			if current, _, err := d.Version(ctx); err != nil || current != 0 {
				t.Fatalf("at %d after going back, %v", current, err)
			}
		}
	})
}

func TestRevertTakesTheLastStepsOnly(t *testing.T) {
	t.Parallel()
	runEmpty(t, func(t *testing.T, d *db.DB) {
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Revert(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		steps, err := d.Steps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range steps {
			if last := i == len(steps)-1; s.AppliedAt.IsZero() != last || !s.Known {
				t.Errorf("step %d: %+v", i, s)
			}
		}
	})
}

// The index of names is built while other servers read persons.
func TestReadersDoNotWaitForTheIndexOfNames(t *testing.T) {
	t.Parallel()
	d := openAt(t, dbtest.EmptyPostgresURL(t))
	if err := d.MigrateTo(t.Context(), 112); err != nil {
		t.Fatal(err)
	}
	reader, err := d.Read(t.Context()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM persons").Scan(&n); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.MigrateTo(ctx, 113); err != nil {
		t.Errorf("beside a reader: %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var index string
	err = d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT string_agg(indexdef, ' ') FROM pg_indexes WHERE tablename = 'persons' AND indexdef LIKE '%label%'").Scan(&index)
	if err != nil || strings.Count(index, "CREATE") != 1 || !strings.Contains(index, `COLLATE "C"`) {
		t.Errorf("indexes of names: %s, %v", index, err)
	}
}

func TestLowerNumberThatArrivesLaterIsApplied(t *testing.T) {
	t.Parallel()
	runEmpty(t, func(t *testing.T, d *db.DB) {
		if err := d.Apply(t.Context(), step(10), step(30)); err != nil {
			t.Fatal(err)
		}
		if err := d.Apply(t.Context(), step(10), step(20), step(30)); err != nil {
			t.Fatal(err)
		}
		if n := count(t, d, "t20") + count(t, d, "t10") + count(t, d, "t30"); n != 3 {
			t.Fatalf("%d rows, want one from each step", n)
		}
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		applied, known []int
		want           string
	}{
		"a higher step": {[]int{10, 42}, []int{10, 37}, "database is at schema 42, this binary knows up to 37: run a newer guidon"},
		"a step in a gap of ours": {[]int{10, 12}, []int{10, 37},
			"database has schema steps [12], which this binary does not know: run a newer guidon"},
	}
	steps := func(numbers []int) (out []migrations.Step) {
		for _, n := range numbers {
			out = append(out, step(n))
		}
		return out
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runEmpty(t, func(t *testing.T, d *db.DB) {
				if err := d.Apply(t.Context(), steps(c.applied)...); err != nil {
					t.Fatal(err)
				}
				err := d.Apply(t.Context(), steps(c.known)...)
				if err == nil || err.Error() != c.want {
					t.Fatalf("got %v\nwant %s", err, c.want)
				}
				if newer, ok := errors.AsType[*db.NewerSchemaError](err); !ok || newer.Known != 37 {
					t.Fatalf("got %#v", err)
				}
				if n := count(t, d, "schema_migrations"); n != len(c.applied) {
					t.Fatalf("%d steps are marked", n)
				}
			})
		})
	}
}

func TestFailingStepLeavesNothing(t *testing.T) {
	t.Parallel()
	bad := step(20)
	bad.Up += " INSERT INTO nowhere (id) VALUES (1);"
	runEmpty(t, func(t *testing.T, d *db.DB) {
		err := d.Apply(t.Context(), step(10), bad, step(30))
		if err == nil || !strings.Contains(err.Error(), "apply migration 0020_t") {
			t.Fatalf("got %v, want the step's name", err)
		}
		if n := count(t, d, "schema_migrations"); n != 1 {
			t.Fatalf("%d steps are marked, want the first", n)
		}
		if err := d.Apply(t.Context(), step(10), step(20), step(30)); err != nil {
			t.Fatalf("the corrected step: %v", err)
		}
	})
}

func TestProcessesThatMigrateTogetherTakeTurns(t *testing.T) {
	t.Parallel()
	dbtest.RunEmptyURL(t, func(t *testing.T, url string) {
		const processes = 4
		var wg sync.WaitGroup
		for range processes {
			wg.Go(func() {
				d, err := db.Open(context.Background(), db.Config{URL: url}, "")
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(d.Migrate(context.Background()), d.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if current, known, err := openAt(t, url).Version(t.Context()); err != nil || current != known {
			t.Fatalf("at %d of %d, %v", current, known, err)
		}
	})
}

func TestSQLiteTableIsRebuiltUnderItsChildren(t *testing.T) {
	t.Parallel()
	d := openAt(t, dbtest.EmptySQLiteURL(t))
	family := migrations.Step{Number: 1, Name: "family", Down: "-", Up: `
		CREATE TABLE parents (id INTEGER PRIMARY KEY);
		CREATE TABLE children (parent INTEGER REFERENCES parents (id) ON DELETE CASCADE);
		INSERT INTO parents VALUES (1); INSERT INTO children VALUES (1);`}
	rebuild := migrations.Step{Number: 2, Name: "rebuild", Down: "-", Up: `
		CREATE TABLE fresh (id INTEGER PRIMARY KEY, name TEXT);
		INSERT INTO fresh SELECT id, '' FROM parents;
		DROP TABLE parents;
		ALTER TABLE fresh RENAME TO parents;`}
	orphan := migrations.Step{Number: 3, Name: "orphan", Down: "-", Up: "DELETE FROM parents;"}

	if err := d.Apply(t.Context(), family, rebuild); err != nil {
		t.Fatal(err)
	}
	if n := count(t, d, "children"); n != 1 {
		t.Fatalf("%d children outlive the rebuilding of their parent's table", n)
	}
	err := d.Apply(t.Context(), family, rebuild, orphan)
	if err == nil || !strings.Contains(err.Error(), "leaves 1 rows") {
		t.Fatalf("a step that leaves an orphan: %v", err)
	}
	exec(t, d, "DELETE FROM parents") // foreign keys are on again: the child goes too
	if n := count(t, d, "children"); n != 0 {
		t.Fatal("foreign keys stay off after a migration")
	}
}
