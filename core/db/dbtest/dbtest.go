// Package dbtest gives every test a fresh database of both dialects.
//
// SQLite is a copy of a migrated file. PostgreSQL is a database cloned from a
// migrated template in a temporary cluster, which the first test of a process
// that needs it starts from the installed binaries and which stops, and leaves
// nothing behind, when the process ends in whatever way. When the environment
// variable GUIDON_TEST_POSTGRES holds the URL of a server whose role may create
// databases, that server is used instead; it gets a template, too. A machine with
// neither fails the test: a store that was tested on one dialect is not tested.
// Only the value "none" of the variable skips the tests on PostgreSQL, for
// contributors without it; make test and the checks of a change refuse that value.
//
// Both live in memory, in /dev/shm, if that has a gigabyte free, and else in the
// directory for temporary files, where the SQLite files of benchmarks always are.
// The cluster does not sync to disk; what it takes to write there says little
// about a real server. StartKillable starts one that does.
//
// Nothing is migrated twice: the SQLite file and the cluster with the template
// stay in the directory for temporary files, for the next process with the same
// migrations, account and release of PostgreSQL. The first process makes them.
// Those of other migrations are removed when there are more than a few.
package dbtest

import (
	"context"
	"hash/fnv"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	_ "github.com/guidonhq/guidon/core/db/sqlite" // opens SQLite files
	"github.com/guidonhq/guidon/migrations"
)

// Run calls fn twice, in the subtests "sqlite" and "postgres", each with a
// fresh database at the newest schema. The two run in parallel with each other
// only if fn says t.Parallel. With -short a test runs on one of them, always the same.
func Run(t *testing.T, fn func(t *testing.T, d *db.DB)) {
	t.Helper()
	runOn(t, func(t *testing.T) { fn(t, SQLite(t)) }, func(t *testing.T) { fn(t, Postgres(t)) })
}

// RunURL is Run for tests that open the store themselves: fn gets the URL of a
// fresh database at the newest schema.
func RunURL(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	runOn(t, func(t *testing.T) { fn(t, SQLiteURL(t)) }, func(t *testing.T) { fn(t, PostgresURL(t)) })
}

// RunEmptyURL is RunURL for tests of the migrations themselves: fn gets the URL of a
// database without any schema.
func RunEmptyURL(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	runOn(t, func(t *testing.T) { fn(t, EmptySQLiteURL(t)) }, func(t *testing.T) { fn(t, EmptyPostgresURL(t)) })
}

// runOn runs both subtests. With -short it chooses one by the name of the test, so that the
// race detector sees half of the tests on each database; without Postgres it is SQLite.
func runOn(t *testing.T, sqlite, postgres func(t *testing.T)) {
	t.Helper()
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name()))
	onSQLite := name.Sum32()%2 == 0 || os.Getenv(env) == withoutPostgres
	if onSQLite || !testing.Short() {
		t.Run("sqlite", sqlite)
	}
	if !onSQLite || !testing.Short() {
		t.Run("postgres", postgres)
	}
}

// SQLite returns a fresh, migrated SQLite database that closes with tb.
func SQLite(tb testing.TB) *db.DB {
	tb.Helper()
	return open(tb, SQLiteURL(tb))
}

// SQLiteURL returns the URL of a fresh, migrated SQLite file.
func SQLiteURL(tb testing.TB) string {
	tb.Helper()
	file, err := migratedFile()
	if err != nil {
		tb.Fatalf("make a migrated SQLite file: %v", err)
	}
	path := filepath.Join(sqliteDir(tb), sqliteFile)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		tb.Fatalf("copy the migrated SQLite file: %v", err)
	}
	return "sqlite:" + path
}

// EmptySQLiteURL returns the URL of a SQLite file that does not exist yet.
func EmptySQLiteURL(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(sqliteDir(tb), sqliteFile)
}

// Postgres returns a fresh, migrated PostgreSQL database that closes, and is
// dropped, with tb.
func Postgres(tb testing.TB) *db.DB {
	tb.Helper()
	return open(tb, PostgresURL(tb))
}

// PostgresURL returns the URL of a fresh, migrated PostgreSQL database that is
// dropped with tb.
func PostgresURL(tb testing.TB) string {
	tb.Helper()
	return running(tb).fresh(tb, false)
}

// EmptyPostgresURL returns the URL of a fresh PostgreSQL database without any
// schema that is dropped with tb.
func EmptyPostgresURL(tb testing.TB) string {
	tb.Helper()
	return running(tb).fresh(tb, true)
}

func open(tb testing.TB, url string) *db.DB {
	tb.Helper()
	d, err := db.Open(tb.Context(), db.Config{URL: url}, "")
	if err != nil {
		tb.Fatalf("open the test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("close the test database: %v", err)
		}
	})
	return d
}

const sqliteFile = "guidon.db"

// sqliteDir returns a new folder that is removed with tb. That of a benchmark is on disk.
func sqliteDir(tb testing.TB) string {
	tb.Helper()
	if _, ok := tb.(*testing.B); ok {
		return tb.TempDir()
	}
	sweep()
	dir, err := newFolder(self(), fastDir())
	if err != nil {
		tb.Fatalf("make a folder for a SQLite file: %v", err)
	}
	tb.Cleanup(dir.remove)
	return dir.path
}

// migratedFile is the content of a migrated SQLite database.
var migratedFile = sync.OnceValues(func() (content []byte, err error) {
	schema, err := schemaHash(migrations.SQLite)
	if err != nil {
		return nil, err
	}
	err = migratedSQLite(self(), schema).use(self(), func(path string) error {
		content, err = os.ReadFile(filepath.Join(path, sqliteFile))
		return err
	})
	return content, err
})

// migrate brings the database at url to the newest schema and closes it.
func migrate(url string) error {
	ctx := context.Background()
	d, err := db.Open(ctx, db.Config{URL: url}, "")
	if err != nil {
		return err
	}
	if err := d.Migrate(ctx); err != nil {
		_ = d.Close()
		return err
	}
	return d.Close()
}
