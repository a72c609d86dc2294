//go:build e2e

package e2e_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// TestConsoleSettings works with the settings in Chromium as an owner and as a member, and
// asks the API for the effect of each step.
func TestConsoleSettings(t *testing.T) { onDatabases(t, testConsoleSettings) }

func testConsoleSettings(t *testing.T, database []string) {
	s := start(t, database...)
	s.do(t, http.MethodPatch, "/api/projects/1/", map[string]any{"name": hostile}, nil, http.StatusOK)
	s.do(t, http.MethodPatch, "/api/users/@me/", map[string]any{"first_name": hostile}, nil, http.StatusOK)
	for _, event := range []map[string]any{
		{"event": "signed up", "distinct_id": "ada", "properties": map[string]any{"$set": map[string]any{"plan": "pro"}}},
		{"event": "old", "distinct_id": "ada", "timestamp": time.Now().AddDate(0, -6, 0).Format(time.RFC3339)},
		{"event": "$groupidentify", "distinct_id": "ada", "properties": map[string]any{"$group_type": "company", "$group_key": "acme"}},
	} {
		event["api_key"] = s.project
		s.do(t, http.MethodPost, "/capture/", event, nil, http.StatusOK)
	}
	// The last event makes the group type and the preview of the retention counts the old one.
	eventually(t, time.Minute, "the events are there", func() error {
		var got struct{ Count int }
		s.do(t, http.MethodGet, "/api/projects/1/event_definitions/", nil, &got, http.StatusOK)
		if got.Count != 3 {
			return fmt.Errorf("%d definitions", got.Count)
		}
		return nil
	})
	joinAnother(t, s)
	inBrowser(t, s, "settings.mjs", map[string]any{"link": s.link})
}

// joinAnother makes the first user a member of a second organization with one project, and
// owner of a third one without; no API makes organizations.
func joinAnother(t *testing.T, s *server) {
	t.Helper()
	s.execute(t,
		"INSERT INTO organizations (id, name, created_at, updated_at) VALUES ('01a20a62-0000-7000-8000-000000000002', 'Side office', 1, 1)",
		"INSERT INTO projects (organization_id, name, created_at, updated_at) VALUES ('01a20a62-0000-7000-8000-000000000002', 'Side shop', 1, 1)",
		"INSERT INTO organization_members (organization_id, user_id, level, joined_at, updated_at) SELECT '01a20a62-0000-7000-8000-000000000002', id, 1, 1, 1 FROM users",
		"INSERT INTO organizations (id, name, created_at, updated_at) VALUES ('01a20a62-0000-7000-8000-000000000003', 'New office', 1, 1)",
		"INSERT INTO organization_members (organization_id, user_id, level, joined_at, updated_at) SELECT '01a20a62-0000-7000-8000-000000000003', id, 15, 1, 1 FROM users",
	)
}

// execute runs statements on the database of the server.
func (s *server) execute(t *testing.T, statements ...string) {
	t.Helper()
	driver, source := "sqlite", "file:"+filepath.Join(s.data, "guidon.db")+"?_pragma=busy_timeout(10000)"
	if url, found := s.database(); found {
		driver, source = "pgx", url
	}
	d, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, statement := range statements {
		if _, err := d.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
