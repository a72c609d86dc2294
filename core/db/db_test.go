package db_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEmptyURLIsAFileInTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data? 100%#1")
	d, err := db.Open(t.Context(), db.DefaultConfig(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"guidon.db", "guidon.db-wal"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v; it holds hashes of keys and people's data", name, info.Mode().Perm())
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "guidon.db-wal")); !os.IsNotExist(err) {
		t.Errorf("the write-ahead log is still there after Close: %v", err)
	}
}

func TestPingAndClose(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, url string) {
		d, err := db.Open(t.Context(), db.Config{URL: url}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Ping(t.Context()); err != nil {
			t.Errorf("ping: %v", err)
		}
		if d.Postgres() != (d.Pool() != nil) {
			t.Error("a pool belongs to Postgres alone")
		}
		for range 2 {
			if err := d.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if err := d.Ping(t.Context()); err == nil {
			t.Error("a closed store answers")
		}
	})
}

func TestURLErrorsKeepTheSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	cases := map[string]string{
		"an unknown scheme":                  "mysql://me:" + secret + "@host/db",
		"no scheme":                          "me " + secret + "@host",
		"a bad escape in the password":       "postgres://me:" + secret + "%zz@host/db",
		"a password with a slash":            "postgres://me:" + secret + "/@host/db",
		"a control character":                "postgres://me:" + secret + "\x7f@host/db",
		"a port that is the password's end":  "postgres://me:x:" + secret + "@host:" + secret + "/db",
		"a bad parameter beside the secret":  "postgres://me:" + secret + "@host/db?sslmode=" + secret,
		"a bad pool size beside the secret":  "postgres://me:" + secret + "@host/db?pool_max_conns=" + secret,
		"a memory database shares no reader": "sqlite::memory:?" + secret,
	}
	for name, url := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := db.Config{URL: url}.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "database.url") {
				t.Fatalf("%q should name database.url and keep its value", err)
			}
		})
	}
}

func TestUnreachableServerIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := db.Open(ctx, db.Config{URL: "postgres://me:hunter2@127.0.0.1:1/flags"}, "")
	if err == nil {
		t.Fatal("reached a server on port 1")
	}
	if s := err.Error(); strings.Contains(s, "hunter2") || !strings.Contains(s, "database flags on 127.0.0.1") {
		t.Fatalf("got %q", s)
	}
}

func TestReadRefusesToWriteOnSQLite(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_, err := d.Read(t.Context()).ExecContext(t.Context(), "DELETE FROM projects")
	if err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Fatalf("got %v, want a refusal", err)
	}
}

func TestSQLiteCommitsAreOnDisk(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"} {
		var got string
		if err := d.Write(t.Context()).QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}
