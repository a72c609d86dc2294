package app_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// Nodes of two versions share a log. The newer one adds to the schema while both run: both go
// on, and the older version does not start again.
func TestTwoVersionsSideBySide(t *testing.T) {
	t.Parallel()
	database, log := dbtest.PostgresURL(t), startBrokers(t)
	node := func(c *app.Config) { onLog(log)(c); c.Database.URL = database }
	older := serve(t, node)
	newer := serveWith(t, func(o *app.Options) { o.Version = "later" }, node)
	newer.ProjectKey, newer.PersonalKey = older.ProjectKey, older.PersonalKey
	older.until(t, "both versions have partitions", func() bool {
		versions := map[string]int{}
		for _, n := range older.clusterStatus(t).Nodes {
			versions[n.Version] += len(n.Partitions)
		}
		return versions["test"] == 3 && versions["later"] == 3
	})
	want := older.captureAs(t, "before", 5) + newer.captureAs(t, "before", 5)
	for _, statement := range []string{
		"ALTER TABLE events ADD COLUMN later_column TEXT NOT NULL DEFAULT ''", "ALTER TABLE persons ADD COLUMN later_column BIGINT", "CREATE TABLE later_table (id BIGINT)",
		"INSERT INTO schema_migrations (number, name, applied_at) VALUES (9999, 'later', 0)",
	} {
		if _, err := newer.DB.Write(t.Context()).ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	want += older.captureAs(t, "after", 5) + newer.captureAs(t, "after", 5)
	older.until(t, "all events are stored", func() bool { all, _ := older.stored(t); return all >= want })
	if all, different := older.stored(t); all != want || different != want {
		t.Errorf("%d events are stored, %d different, want %d", all, different, want)
	}
	if err := startOnLog(t, database, log); err == nil || !strings.Contains(err.Error(), "9999") {
		t.Errorf("a version that does not know the schema: %v", err)
	}
}
