package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
)

// The process of the parquet sink is killed again and again while it holds
// events, and so is the server: every event that was accepted is in the files,
// once.
func TestAKilledParquetSinkLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	lake := filepath.Join(s.dir, "lake")
	yaml := fmt.Sprintf("plugins:\n  instances:\n    - name: lake\n      kind: sink\n      use: parquet\n      config:\n        path: %q\n        flush_events: 150\n        flush_age: 1s\n", lake)
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{}
	for round := range 3 {
		s.start(t)
		for n := range 50 {
			ids, path, body := request(s.project, round, n)
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
		if round < 2 {
			s.kill()
		}
	}
	until(t, 60*time.Second, func() string { return missing(acked, inFiles(t, lake), "the parquet files") })
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
	for id, times := range inFiles(t, lake) {
		if times != 1 {
			t.Errorf("%s is there %d times", id, times)
		}
	}
}

// inFiles lists the uuids in the Parquet files under dir.
func inFiles(t *testing.T, dir string) map[string]int {
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
			continue // replaced in between
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
