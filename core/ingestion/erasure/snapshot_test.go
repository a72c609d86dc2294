package erasure

import (
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/core/db"
)

// snapshot is a backup of the tables of erasures, in tables beside them.
type snapshot int

var (
	snapshots     sequence
	erasureTables = []string{"erasures", "erased_ids", "erasure_scans"}
)

func takeSnapshot(tb testing.TB, d *db.DB) snapshot {
	tb.Helper()
	n := snapshot(snapshots.next())
	for _, name := range erasureTables {
		execute(tb, d, fmt.Sprintf("CREATE TABLE backup_%d_%s AS SELECT * FROM %s", n, name, name))
	}
	return n
}

func (n snapshot) restore(tb testing.TB, d *db.DB) {
	tb.Helper()
	for _, name := range erasureTables {
		execute(tb, d, "DELETE FROM "+name)
		execute(tb, d, fmt.Sprintf("INSERT INTO %s SELECT * FROM backup_%d_%s", name, n, name))
	}
}

func execute(tb testing.TB, d *db.DB, query string) {
	tb.Helper()
	if _, err := d.Write(tb.Context()).ExecContext(tb.Context(), query); err != nil {
		tb.Fatal(err)
	}
}
