package dbtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A killed server has its committed rows after the next start.
func TestKillable(t *testing.T) {
	t.Parallel()
	_ = dbtest.PostgresURL(t) // skips the test without Postgres
	k := dbtest.StartKillable(t)
	query := func(statement string) (n int) {
		t.Helper()
		c, err := pgx.Connect(t.Context(), k.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		if err := c.QueryRow(t.Context(), statement).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	c, err := pgx.Connect(t.Context(), k.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "CREATE TABLE kept AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	k.Kill(t)
	if _, err := pgx.Connect(t.Context(), k.URL); err == nil {
		t.Error("a killed server accepts connections")
	}
	k.Start(t)
	if n := query("SELECT n FROM kept"); n != 7 {
		t.Errorf("got %d, want 7", n)
	}
}
