package db_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/db/sqlite"
)

// A statement that returns one row of many that it reads pauses meanwhile on SQLite.
func TestPauseEvery(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const rows = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10000) SELECT i FROM n) AS r"
		before, n := sqlite.Pauses(), 0
		q := d.Read(t.Context()).NewSelect().TableExpr(rows).ColumnExpr("count(*)")
		if err := db.PauseEvery(q, 100, "r.i").Scan(t.Context(), &n); err != nil || n != 10_000 {
			t.Fatalf("counted %d rows: %v", n, err)
		}
		want := int64(100)
		if d.Postgres() {
			want = 0
		}
		if calls := sqlite.Pauses() - before; calls != want {
			t.Errorf("%d pauses, want %d", calls, want)
		}
	})
}
