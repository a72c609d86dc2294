package dbclock_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbclock"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// TestClock compares the clock with the machine's, which a test database shares.
func TestClock(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := dbclock.New(d)
		for range 2 {
			before := time.Now()
			got := c.Now()
			if after := time.Now(); got.Before(before.Add(-time.Minute)) || got.After(after.Add(time.Minute)) {
				t.Errorf("%s is not between %s and %s", got, before, after)
			}
			if err := c.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		first := c.Now()
		if second := c.Now(); second.Before(first) {
			t.Errorf("%s comes after %s", second, first)
		}
	})
}

// TestClockOfAnotherMachine gives the database a clock that is an hour ahead of the
// machine's.
func TestClockOfAnotherMachine(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	for _, ahead := range []bool{false, true} {
		d, err := db.Open(t.Context(), db.Config{URL: url}, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		c := dbclock.New(d)
		if err := c.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Until(c.Now()) > 50*time.Minute; got != ahead {
			t.Errorf("the clock is %s ahead", time.Until(c.Now()))
		}
		if got := c.Ahead() < -50*time.Minute; got != ahead {
			t.Errorf("the machine is %s ahead", c.Ahead())
		}
		for _, s := range []string{
			"CREATE SCHEMA IF NOT EXISTS ahead",
			`CREATE OR REPLACE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql
				AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$`,
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = ahead, pg_catalog, public', current_database()); END $$`,
		} {
			if _, err := d.Write(t.Context()).ExecContext(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
}
