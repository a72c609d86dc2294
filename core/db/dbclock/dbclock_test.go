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
