package app_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// request sends a request with the personal key and returns status and body.
func (s *server) request(t *testing.T, method, url, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// TestStartWithoutTheDatabase restarts a server while its database is away: it
// captures, decides and serves local evaluation from the snapshot, refuses
// management, and works normally when the database is back.
func TestStartWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	proxy := newTCPProxy(t, dbtest.PostgresURL(t))
	data := filepath.Join(t.TempDir(), "data")
	change := func(c *app.Config) {
		c.DataDir, c.Database = data, db.Config{URL: proxy.url}
		c.Ingestion.Worker.RetryMax = 200 * time.Millisecond
	}
	first := serve(t, change)
	first.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/", `{"key":"on","filters":{"groups":[{"properties":[],"rollout_percentage":100}]}}`)
	first.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/", `{"key":"stored","filters":{"groups":[{"properties":[{"key":"plan","value":"pro","type":"person"}],"rollout_percentage":100}]}}`)
	snapshot := filepath.Join(data, "standby.snapshot")
	first.until(t, "the snapshot has the flags", func() bool {
		raw, _ := os.ReadFile(snapshot)
		return strings.Contains(string(raw), `"stored"`)
	})
	raw, _ := os.ReadFile(snapshot)
	for _, secret := range []string{first.ProjectKey, first.PersonalKey, "phc_", "phx_"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("the snapshot contains %s", secret)
		}
	}
	if info, err := os.Stat(snapshot); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the snapshot: %v %v", info.Mode(), err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	proxy.block(true)
	s := serveExisting(t, change)
	s.ProjectKey, s.PersonalKey = first.ProjectKey, first.PersonalKey

	if status, answer, _ := s.request(t, "POST", s.URL+"/capture/", `{"api_key":"`+s.ProjectKey+`","event":"kept","distinct_id":"u"}`); status != http.StatusOK {
		t.Errorf("capture: %d %s", status, answer)
	}
	if status, answer, _ := s.request(t, "POST", s.URL+"/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"u"}`); status != http.StatusOK || !strings.Contains(answer, `"on":true`) {
		t.Errorf("decide: %d %s", status, answer)
	}
	if status, answer, _ := s.request(t, "POST", s.URL+"/decide?v=3", `{"api_key":"phc_unknown_unknown_unknown","distinct_id":"u"}`); status != http.StatusServiceUnavailable {
		t.Errorf("decide with a key that may be newer than the snapshot: %d %s", status, answer)
	}
	for _, path := range []string{"/api/projects/1/feature_flags/local_evaluation", "/api/feature_flag/local_evaluation?token=" + s.ProjectKey} {
		if status, answer, _ := s.request(t, "GET", s.URL+path, ""); status != http.StatusOK || !strings.Contains(answer, `"key":"on"`) {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	for _, c := range []struct{ method, path string }{{"GET", "/api/projects/1/feature_flags/"}, {"POST", "/api/projects/1/feature_flags/"}, {"GET", "/api/users/@me"}} {
		status, answer, header := s.request(t, c.method, s.URL+c.path, "{}")
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(answer, "database_unavailable") {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, answer)
		}
	}
	if status, answer, _ := s.request(t, "GET", s.AdminURL+"/_readiness", ""); status != http.StatusOK || !strings.Contains(answer, "waiting for the database, serving from the snapshot of 20") || !strings.Contains(answer, `"status":"degraded"`) {
		t.Errorf("readiness: %d %s", status, answer)
	}
	proxy.block(false)
	s.until(t, "management works", func() bool {
		status, _, _ := s.request(t, "GET", s.URL+"/api/projects/1/feature_flags/", "")
		return status == http.StatusOK
	})
	s.until(t, "the event is stored", func() bool {
		status, answer, _ := s.request(t, "GET", s.URL+"/api/projects/1/events/?event=kept", "")
		return status == http.StatusOK && strings.Contains(answer, `"kept"`)
	})
	if _, answer, _ := s.request(t, "GET", s.AdminURL+"/_readiness", ""); !strings.Contains(answer, `"database":{"state":"ok"}`) {
		t.Errorf("readiness: %s", answer)
	}
}

// TestFirstStartWithoutTheDatabase has no snapshot: the server waits, says so,
// and sets up the first project when the database appears.
func TestFirstStartWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	proxy := newTCPProxy(t, dbtest.EmptyPostgresURL(t))
	proxy.block(true)
	s := serveExisting(t, func(c *app.Config) { c.Database = db.Config{URL: proxy.url} })
	for _, path := range []string{"/capture/", "/decide?v=3"} {
		status, answer, header := s.request(t, "POST", s.URL+path, `{"api_key":"phc_unknown_unknown_unknown","event":"e","distinct_id":"u"}`)
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, answer, _ := s.request(t, "GET", s.AdminURL+"/_readiness", ""); status != http.StatusServiceUnavailable || !strings.Contains(answer, "there is no snapshot") {
		t.Errorf("readiness: %d %s", status, answer)
	}
	proxy.block(false)
	s.until(t, "the server is ready", func() bool {
		status, _, _ := s.request(t, "GET", s.AdminURL+"/_readiness", "")
		return status == http.StatusOK
	})
	s.until(t, "there is a project", func() bool {
		var n int
		err := s.DB.Read(t.Context()).NewRaw("SELECT count(*) FROM projects").Scan(t.Context(), &n)
		return err == nil && n == 1
	})
}
