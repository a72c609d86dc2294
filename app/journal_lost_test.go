package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/app"
)

// A journal that was removed, or replaced by an older copy, together with its mark is
// noticed by the cursor of the database: readiness is degraded, also after a restart,
// until an operator acknowledges that events may be missing.
func TestALostJournalIsReportedUntilAcknowledged(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		name := map[bool]string{false: "removed", true: "replaced by an older copy"}[older]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var cfg app.Config
			change := func(c *app.Config) { c.DataDir, c.Plugins.Instances, cfg = dir, nil, *c; cfg.DataDir = dir }
			start := func() *server { return serveExisting(t, change) }
			capture := func(s *server) {
				t.Helper()
				before, _ := storedEvents(s.Server)
				s.capture(t, `{"event":"e","uuid":"`+uuid.NewString()+`","distinct_id":"u"}`)
				s.until(t, "the event is stored", func() bool { n, err := storedEvents(s.Server); return err == nil && len(n) == len(before)+1 })
			}
			s := start()
			key := s.First.ProjectKey
			s.ProjectKey = key
			capture(s)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			journal := filepath.Join(dir, "journal")
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(journal)); err != nil {
				t.Fatal(err)
			}
			s = start()
			s.ProjectKey = key
			capture(s)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(journal); err != nil {
				t.Fatal(err)
			}
			if older {
				if err := os.CopyFS(journal, os.DirFS(copied)); err != nil {
					t.Fatal(err)
				}
			}

			degraded := func(s *server) bool {
				status, answer, _ := s.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
				return status == http.StatusOK && strings.Contains(answer, `"status":"degraded"`) && strings.Contains(answer, "Acknowledged events") ||
					strings.Contains(answer, "acknowledged events")
			}
			for range 2 { // also after a restart
				s = start()
				s.ProjectKey = key
				s.until(t, "readiness is degraded", func() bool { return degraded(s) })
				capture(s)
				if err := s.Stop(); err != nil {
					t.Fatal(err)
				}
			}
			s = start()
			texts, err := app.AcknowledgeIncidents(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(texts) != 1 {
				t.Errorf("acknowledged %q, want one incident", texts)
			}
			if degraded(s) {
				t.Error("readiness is degraded after the acknowledgement")
			}
			if _, err := time.Parse(time.RFC3339, strings.Fields(texts[0])[0]); err != nil {
				t.Error(err)
			}
		})
	}
}
