package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The test kills the process of the postgres sink under load: every accepted event
// is in the table exactly once.
func TestPostgresSinkSurvivesKills(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyPostgresURL(t)
	s := newServer(t)
	yaml := fmt.Sprintf("plugins:\n  instances:\n    - name: warehouse\n      kind: sink\n      use: postgres\n      config:\n        url: %q\n", url)
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	acked := map[string]bool{}
	for round := range 2 {
		for n := range 50 {
			ids, path, body := captureRequest(s.project, round, n)
			if code, err := s.post(path, body); err != nil || code != http.StatusOK {
				t.Fatalf("%d %v", code, err)
			}
			for _, id := range ids {
				acked[id] = true
			}
			if n == 25 {
				killPlugin(t, s)
			}
		}
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	until(t, func() string { return missingEvents(acked, tableEvents(t, c), "the postgres sink") })
	for id, times := range tableEvents(t, c) {
		if times != 1 {
			t.Errorf("%s is in the table %d times", id, times)
		}
	}
}

// tableEvents lists the uuids in the table.
func tableEvents(t *testing.T, c *pgx.Conn) map[string]int {
	t.Helper()
	rows, err := c.Query(t.Context(), "SELECT uuid::text FROM events")
	if err != nil {
		return nil // the table does not exist yet
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil
	}
	found := make(map[string]int, len(ids))
	for _, id := range ids {
		found[id]++
	}
	return found
}
