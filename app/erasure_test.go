package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

// tablesWith lists the tables in which any column contains the text.
func tablesWith(t *testing.T, d *db.DB, text string) []string {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if d.Postgres() {
		query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var tables, out []string
	if err := d.Read(t.Context()).NewRaw(query).Scan(t.Context(), &tables); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if tableHas(t, d, table, text) {
			out = append(out, table)
		}
	}
	slices.Sort(out)
	return out
}

func tableHas(t *testing.T, d *db.DB, table, text string) (found bool) {
	t.Helper()
	rows, err := d.Read(t.Context()).QueryContext(t.Context(), `SELECT * FROM "`+table+`"`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]sql.RawBytes, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			found = found || bytes.Contains(v, []byte(text))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *server) manage(t *testing.T, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
	return s.send(t, req)
}

func (s *server) capture(t *testing.T, events string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL+"/batch/", strings.NewReader(`{"api_key":"`+s.ProjectKey+`","batch":[`+events+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := s.send(t, req); status != http.StatusOK {
		t.Fatalf("capture: %d %s", status, answer)
	}
}

// personID returns the number of the person of a distinct id, "" without one.
func (s *server) personID(t *testing.T, distinctID string) string {
	t.Helper()
	_, answer := s.manage(t, http.MethodGet, "/api/projects/1/persons/?distinct_id="+distinctID)
	if m := regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(answer); m != nil {
		return m[1]
	}
	return ""
}

// TestErasedPersonLeavesNothing erases a person that every table with data of
// persons knows, and searches the whole database for it.
func TestErasedPersonLeavesNothing(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, dbURL string) {
		broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
		t.Cleanup(broken.Close)
		s := serve(t, func(c *app.Config) {
			c.Database.URL = dbURL
			c.Notifications.Burst, c.Notifications.Every = 2, time.Hour
			c.Notifications.RetryMin = time.Minute
			c.Plugins.Instances = append(c.Plugins.Instances, settings.Instance{
				Name: "hook", Kind: "notifier", Use: "webhook", Config: map[string]any{"url": broken.URL, "allow_networks": []any{"127.0.0.0/8"}},
			})
		})
		s.mustManage(t, http.MethodPost, "/api/projects/1/actions/",
			`{"name":"Paid","steps":[{"event":"paid"}],"post_to_chat":true,"chat_message_format":"[person] paid"}`)
		s.capture(t, `
			{"event":"visit","distinct_id":"needle-anon","uuid":"0192f0aa-0000-7000-8000-0000000000ee"},
			{"event":"$identify","distinct_id":"needle-id","properties":{"$anon_distinct_id":"needle-anon","$set":{"email":"needle-mail@example.com"}}},
			{"event":"$identify","distinct_id":"needle-id","properties":{"$anon_distinct_id":"anonymous"}},
			{"event":"paid","distinct_id":"needle-id"},{"event":"paid","distinct_id":"needle-anon"},
			{"event":"paid","distinct_id":"needle-id"},{"event":"paid","distinct_id":"needle-id"},
			{"event":"paid","distinct_id":"other","properties":{"$set":{"email":"other@example.com"}}}`)
		addDeadLetters(t, s.DB)
		known := []string{"cohort_members", "dead_letters", "events", "ingestion_warnings", "notifications", "person_distinct_ids", "persons"}
		s.until(t, "every table knows the person", func() bool {
			has := tablesWith(t, s.DB, "needle")
			return !slices.ContainsFunc(known, func(table string) bool { return !slices.Contains(has, table) })
		})
		s.until(t, "the follower is done", func() bool {
			var n int
			err := s.DB.Read(t.Context()).NewRaw("SELECT coalesce(sum(suppressed), 0) FROM notification_rates").Scan(t.Context(), &n)
			return err == nil && n == 3
		})
		id := s.personID(t, "needle-anon")
		if status, answer := s.manage(t, http.MethodDelete, "/api/projects/1/persons/"+id+"/?delete_events=true"); status != http.StatusNoContent {
			t.Fatalf("%d %s", status, answer)
		}
		if status, answer := s.manage(t, http.MethodGet, "/api/projects/1/events/0192f0aa-0000-7000-8000-0000000000ee/trace/"); status != http.StatusNotFound {
			t.Errorf("trace of an erased event: %d %s", status, answer)
		}
		if left := tablesWith(t, s.DB, "needle"); len(left) > 0 {
			t.Errorf("the person is still in %q", left)
		}
		if got := tablesWith(t, s.DB, "other@example.com"); !slices.Contains(got, "persons") || !slices.Contains(got, "events") {
			t.Errorf("another person is only in %q", got)
		}
		for _, path := range []string{"persons/" + id + "/", "persons/?search=needle", "events/?distinct_id=needle-id", "dead_letters/?search=needle", "ingestion_warnings/"} {
			if _, answer := s.manage(t, http.MethodGet, "/api/projects/1/"+path); strings.Contains(answer, "needle-m") || strings.Contains(answer, `"needle-`) {
				t.Errorf("%s: %s", path, answer)
			}
		}
		s.until(t, "the write-ahead log is truncated", func() bool {
			done, err := s.DB.TruncateLog(t.Context())
			return done && err == nil
		})
		checkFile(t, dbURL)
	})
}

// addDeadLetters adds dead letters and a static membership, which need no plugin.
func addDeadLetters(t *testing.T, d *db.DB) {
	t.Helper()
	ctx := t.Context()
	letters := deadletter.NewStore(d)
	ev := sdk.Event{
		UUID: "0192f0aa-0000-7000-8000-0000000000dd", ProjectID: 1, Name: "paid", DistinctID: "needle-id",
		Timestamp: time.Now(), ReceivedAt: time.Now().Add(-time.Minute), Properties: []byte(`{"note":"needle-note"}`),
	}
	if err := letters.Add(ctx, deadletter.New("sink/gone", &ev, &sdk.Error{Code: "x", Message: "needle-text"}, time.Now())); err != nil {
		t.Fatal(err)
	}
	_, err := d.Write(ctx).NewRaw("INSERT INTO cohort_members (project_id, distinct_id, cohort_id) VALUES (1, 'needle-anon', 5)").Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

// checkFile searches the files of a SQLite database for the person.
func checkFile(t *testing.T, dbURL string) {
	t.Helper()
	path, ok := strings.CutPrefix(dbURL, "sqlite:")
	if !ok {
		return
	}
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if at := bytes.Index(data, []byte("needle")); at >= 0 {
			t.Errorf("%s still holds the person at %d: %.60q", filepath.Base(name), at, data[at:])
		}
	}
}

// startIn starts a server on a data directory and a database that may exist.
func startIn(t *testing.T, dir, dbURL string, first *server) *server {
	t.Helper()
	cfg, err := app.Load(file(t, "{}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress, cfg.Database.URL = dir, "127.0.0.1:0", "127.0.0.1:0", dbURL
	s := &server{}
	s.Server, err = app.Start(t.Context(), cfg, app.Options{Version: "test", Log: zap.NewNop(), BundledNames: plugins.Names(), Operators: plugins.Operators,
		Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} }})
	if err != nil {
		t.Fatal(err)
	}
	if first != nil {
		s.ProjectKey, s.PersonalKey = first.ProjectKey, first.PersonalKey
	} else {
		<-s.Bootstrapped() // later than the start if the database is busy
		s.ProjectKey, s.PersonalKey = s.First.ProjectKey, s.First.PersonalKey
	}
	return s
}

// copyDatabase copies a database that is not open and returns the URL of the copy.
func copyDatabase(t *testing.T, from string) string {
	t.Helper()
	if path, ok := strings.CutPrefix(from, "sqlite:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return "sqlite:" + to
	}
	u, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	maintenance, to := *u, *u
	maintenance.Path, to.Path = "/postgres", "/"+name+"_copy"
	server, err := db.Open(t.Context(), db.Config{URL: maintenance.String()}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write(t.Context()).ExecContext(t.Context(), fmt.Sprintf(`CREATE DATABASE "%s_copy" TEMPLATE "%s"`, name, name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = server.Write(context.Background()).ExecContext(context.Background(), fmt.Sprintf(`DROP DATABASE IF EXISTS "%s_copy" WITH (FORCE)`, name))
		_ = server.Close()
	})
	return to.String()
}

// TestRestoreBringsNoErasedPersonBack restores a database from before an erasure
// beside the journal.
func TestRestoreBringsNoErasedPersonBack(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, dbURL string) {
		dir := t.TempDir()
		s := startIn(t, dir, dbURL, nil)
		first := s
		stop := func() {
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		stored := func(uuid string) bool {
			status, _ := s.manage(t, http.MethodGet, "/api/projects/1/events/"+uuid+"/")
			return status == http.StatusOK
		}
		const id = "0192f0aa-0000-7000-8000-00000000000"
		s.capture(t, `{"event":"old","distinct_id":"gone","uuid":"`+id+`1","properties":{"$set":{"mark":"old"}}},
			{"event":"old","distinct_id":"half","uuid":"`+id+`2","properties":{"$set":{"mark":"old"}}}`)
		s.until(t, "the first events are stored", func() bool { return stored(id+"1") && stored(id+"2") })
		stop()
		backup := copyDatabase(t, dbURL)

		s = startIn(t, dir, dbURL, first)
		s.capture(t, `{"event":"late","distinct_id":"gone","uuid":"`+id+`3","properties":{"$set":{"mark":"late"}}},
			{"event":"late","distinct_id":"half","uuid":"`+id+`4","properties":{"$set":{"mark":"late"}}},
			{"event":"late","distinct_id":"stays","uuid":"`+id+`5","properties":{"$set":{"mark":"late"}}}`)
		s.until(t, "the late events are stored", func() bool { return stored(id+"3") && stored(id+"4") && stored(id+"5") })
		for _, path := range []string{s.personID(t, "gone") + "/?delete_events=true", s.personID(t, "half") + "/"} {
			if status, answer := s.manage(t, http.MethodDelete, "/api/projects/1/persons/"+path); status != http.StatusNoContent {
				t.Fatalf("%d %s", status, answer)
			}
		}
		s.capture(t, `{"event":"new","distinct_id":"gone","uuid":"`+id+`6","properties":{"$set":{"fresh":1}}}`)
		s.until(t, "the new event is stored", func() bool { return stored(id + "6") })
		check := func(when string) {
			t.Helper()
			for n, want := range map[string]bool{"1": false, "2": true, "3": false, "4": true, "5": true, "6": true} {
				if got := stored(id + n); got != want {
					t.Errorf("%s: event %s stored: %t", when, n, got)
				}
			}
			_, answer := s.manage(t, http.MethodGet, "/api/projects/1/persons/?distinct_id=gone")
			if !strings.Contains(answer, `"fresh":1`) || strings.Contains(answer, "mark") {
				t.Errorf("%s: the later person is %s", when, answer)
			}
			if s.personID(t, "half") != "" || s.personID(t, "stays") == "" {
				t.Errorf("%s: person half %q, person stays %q", when, s.personID(t, "half"), s.personID(t, "stays"))
			}
		}
		check("before the restore")
		stop()

		s = startIn(t, dir, backup, first)
		s.until(t, "the journal is processed again", func() bool { return stored(id + "6") })
		check("after the restore")
		stop()
		s = startIn(t, dir, backup, first)
		defer stop()
		check("after another start")
	})
}
