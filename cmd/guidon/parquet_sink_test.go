package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
)

// The test kills the process of the parquet sink while it holds events, and the
// server: every accepted event is in the files exactly once.
func TestParquetSinkSurvivesKills(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	lake := filepath.Join(s.dir, "lake")
	yaml := fmt.Sprintf("plugins:\n  instances:\n    - name: lake\n      kind: sink\n      use: parquet\n      config:\n        path: %q\n        flush_events: 150\n        flush_age: 1s\n", lake)
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{}
	for round := range 2 {
		s.start(t)
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
		if round == 0 {
			s.kill()
		}
	}
	until(t, func() string { return missingEvents(acked, parquetEvents(t, lake), "the parquet files") })
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
	for id, times := range parquetEvents(t, lake) {
		if times != 1 {
			t.Errorf("%s is in the files %d times", id, times)
		}
	}
}

// parquetEvents lists the uuids in the Parquet files under dir.
func parquetEvents(t *testing.T, dir string) map[string]int {
	t.Helper()
	names, err := filepath.Glob(dir + "/project_id=*/date=*/hour=*/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, name := range names {
		rows, err := parquet.ReadFile[struct {
			UUID [16]byte `parquet:"uuid,uuid"`
		}](name)
		if os.IsNotExist(err) {
			continue // replaced since the listing
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range rows {
			found[uuid.UUID(r.UUID).String()]++
		}
	}
	return found
}
