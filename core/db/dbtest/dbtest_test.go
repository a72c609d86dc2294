package dbtest_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

func TestEachDatabaseIsFreshAndMigrated(t *testing.T) {
	t.Parallel()
	for range 2 {
		dbtest.Run(t, func(t *testing.T, d *db.DB) {
			current, known, err := d.Version(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if current == 0 || current != known {
				t.Fatalf("at step %d of %d", current, known)
			}
			if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE mine (id INTEGER)"); err != nil {
				t.Fatalf("the second database knows the first: %v", err)
			}
		})
	}
}

func TestURLsNameEmptyDatabases(t *testing.T) {
	t.Parallel()
	dbtest.RunEmptyURL(t, func(t *testing.T, url string) {
		d, err := db.Open(t.Context(), db.Config{URL: url}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		if current, _, err := d.Version(t.Context()); err != nil || current != 0 {
			t.Fatalf("at step %d, %v; want an empty database", current, err)
		}
	})
}
