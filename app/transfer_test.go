package app_test

import (
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/transfer"
	"github.com/guidonhq/guidon/migrations"
)

// A migration that adds a table says in core/transfer/tables.go whether guidon
// migrate-data copies it. The test of that package also compares the databases.
func TestPackageTransferNamesEveryTable(t *testing.T) {
	t.Parallel()
	known := transfer.LeftOut()
	for _, name := range transfer.Copied() {
		known[name] = "copied"
	}
	dropped := []string{"flag_activity", "action_activity"} // into activity_log
	for _, dialect := range []migrations.Dialect{migrations.SQLite, migrations.Postgres} {
		names, err := migrations.Tables(dialect)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if known[name] == "" && !slices.Contains(dropped, name) {
				t.Errorf("%s: the table %s is neither copied nor left out by core/transfer/tables.go", dialect, name)
			}
		}
	}
}
