package dbclock

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A database that answers slowly is not asked at each call, and its late answer does not
// replace an earlier one.
func TestSlowDatabaseIsAskedSeldom(t *testing.T) {
	t.Parallel()
	d, err := db.Open(t.Context(), db.Config{URL: dbtest.PostgresURL(t) + "&search_path=slow,pg_catalog"}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c := New(d)
	sync := func() {
		t.Helper()
		if err := c.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	for _, s := range []string{
		"CREATE SCHEMA slow", "CREATE SEQUENCE slow.asked",
		`CREATE FUNCTION slow.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
			PERFORM nextval('slow.asked'), pg_sleep(1.1);
			RETURN pg_catalog.clock_timestamp();
		END $$`,
	} {
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	age := func() *reading {
		r := *c.read.Load()
		r.machine, r.database = r.machine.Add(-maxAge), r.database.Add(-maxAge)
		c.read.Store(&r)
		return &r
	}
	aged := age()
	sync()
	sync()
	wantAsked(t, d, 1)
	if *c.read.Load() != *aged {
		t.Error("a late answer has replaced an earlier one")
	}
	long := time.Now().Add(-maxAge)
	c.asked.Store(&long)
	sync()
	wantAsked(t, d, 2)
}

func wantAsked(t *testing.T, d *db.DB, want int) {
	t.Helper()
	var asked int
	if err := d.Pool().QueryRow(t.Context(), "SELECT last_value FROM slow.asked").Scan(&asked); err != nil {
		t.Fatal(err)
	}
	if asked != want {
		t.Errorf("the database was asked %d times, want %d", asked, want)
	}
}
