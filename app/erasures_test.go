package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/guidonhq/guidon/app"
)

// A database that is restored without its journal learns the erasures from a list
// that was kept outside of the server.
func TestErasuresAreAppliedFromAListAfterARestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var cfg app.Config
	change := func(c *app.Config) { c.DataDir, c.Plugins.Instances = dir, nil; cfg = *c }
	start := func(key, personal string) *server {
		s := serveExisting(t, change)
		if s.ProjectKey, s.PersonalKey = key, personal; key == "" {
			s.ProjectKey, s.PersonalKey = s.First.ProjectKey, s.First.PersonalKey
		}
		return s
	}
	stop := func(s *server) {
		t.Helper()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	persons := func(s *server) (ids []int64) {
		t.Helper()
		var page struct{ Results []struct{ ID int64 } }
		_, answer, _ := s.request(t, "GET", s.URL+"/api/projects/1/persons/", "")
		if err := json.Unmarshal([]byte(answer), &page); err != nil {
			t.Fatal(answer, err)
		}
		for _, p := range page.Results {
			ids = append(ids, p.ID)
		}
		return ids
	}
	s := start("", "")
	key, personal := s.ProjectKey, s.PersonalKey
	s.capture(t, `{"event":"e","distinct_id":"erased","properties":{"$set":{"a":1}}},{"event":"e","distinct_id":"kept","properties":{"$set":{"a":1}}}`)
	s.until(t, "the persons are stored", func() bool { return len(persons(s)) == 2 })
	stop(s)
	backup, err := os.ReadFile(filepath.Join(dir, "guidon.db"))
	if err != nil {
		t.Fatal(err)
	}
	s = start(key, personal)
	var found struct{ Results []struct{ ID int64 } }
	_, answer, _ := s.request(t, "GET", s.URL+"/api/projects/1/persons/?distinct_id=erased", "")
	if err := json.Unmarshal([]byte(answer), &found); err != nil || len(found.Results) != 1 {
		t.Fatal(answer, err)
	}
	if status, answer, _ := s.request(t, "DELETE", fmt.Sprintf("%s/api/projects/1/persons/%d/?delete_events=true", s.URL, found.Results[0].ID), ""); status != 204 {
		t.Fatal(status, answer)
	}
	list, err := app.Erasures(t.Context(), cfg)
	if err != nil || len(list) != 1 || list[0].EventsAt.IsZero() {
		t.Fatalf("list %+v, %v", list, err)
	}
	stop(s)

	for _, gone := range []string{"journal", "guidon.db", "guidon.db-wal", "guidon.db-shm"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "guidon.db"), backup, 0o600); err != nil {
		t.Fatal(err)
	}
	for want := 1; want >= 0; want-- { // a second time finds nothing new
		n, err := app.RequestErasures(t.Context(), cfg, list)
		if err != nil || n != want {
			t.Errorf("requested %d erasures, %v; want %d", n, err, want)
		}
		s = start(key, personal)
		s.until(t, "the person is erased", func() bool { return len(persons(s)) == 1 })
		stop(s)
	}
	if _, err := app.RequestErasures(t.Context(), cfg, []app.ErasureRecord{{ProjectID: 1, Hash: "x"}}); err == nil {
		t.Error("an invalid list is accepted")
	}
}
