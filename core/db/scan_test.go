package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

func TestScanReadsRowsOfOneState(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var got []string
		queries := []string{"SELECT 1, 'a', NULL, -5, '' UNION ALL SELECT 2, 'b', 'x', 7, 'y'", "SELECT 3, 'c', NULL, 0, ''"}
		err := d.Scan(t.Context(), queries, func(query int, r *db.Row) error {
			got = append(got, fmt.Sprintf("%d %d %s %v %d %t", query, r.Int(0), r.Bytes(1), r.Bytes(2) == nil, r.Int(3), r.Bytes(4) == nil))
			return nil
		})
		if want := "[0 1 a true -5 false 0 2 b false 7 false 1 3 c true 0 false]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	})
}

func TestScanEndsWithItsFunctionAndItsContext(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		stop := errors.New("enough")
		many := "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000000) SELECT "
		if err := d.Scan(t.Context(), []string{many + "x FROM n LIMIT 1000"}, func(int, *db.Row) error { return stop }); !errors.Is(err, stop) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		// The query has no row before its end.
		if err := d.Scan(ctx, []string{many + "count(*) FROM n"}, func(int, *db.Row) error { return nil }); err == nil || ctx.Err() == nil {
			t.Errorf("a canceled scan: %v", err)
		}
		if err := d.Scan(t.Context(), []string{"SELECT 1"}, func(int, *db.Row) error { return nil }); err != nil {
			t.Errorf("after a canceled scan: %v", err)
		}
		if err := d.Scan(t.Context(), []string{"SELECT nothing FROM nowhere"}, func(int, *db.Row) error { return nil }); err == nil {
			t.Error("an invalid query succeeds")
		}
	})
}

func TestScanDoesNotWrite(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if err := d.Scan(t.Context(), []string{"DELETE FROM projects"}, func(int, *db.Row) error { return nil }); err == nil {
			t.Error("a scan writes")
		}
	})
}
