//go:build e2e

package app_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// TestClickHouseStories runs the stories with the events in ClickHouse, except those that read
// the table of events in the database.
func TestClickHouseStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	server := clickhousetest.Start(t)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(txtar.Format(archive)), "FROM events") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			events := eventsURL(t, server, "story_"+strings.ReplaceAll(name, "-", "_"))
			s := &story{server: serve(t, func(c *app.Config) {
				c.Database.URL, c.Events.URL = dbtest.PostgresURL(t), events
				addPlugins(t, c, archive.Comment)
			}), vars: map[string]string{}}
			s.vars["PROJECT_KEY"], s.vars["PERSONAL_KEY"] = s.server.ProjectKey, s.server.PersonalKey
			for _, part := range archive.Files {
				s.server.until(t, "ClickHouse has what is processed", func() bool { return inserted(t, s.server) })
				s.run(t, part)
			}
		})
	}
}

// eventsURL makes a database in ClickHouse and returns the setting that names it.
func eventsURL(t *testing.T, server, database string) string {
	t.Helper()
	clickhousetest.Query(t, server, "CREATE DATABASE "+database)
	t.Cleanup(func() { clickhousetest.Query(t, server, "DROP DATABASE "+database) })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.User, u.Path = "clickhouse", url.UserPassword("default", "hush"), "/"+database
	return u.String()
}

// TestClickHouseLiveEvents is TestLiveEventsOfTwoServers with the events in ClickHouse, into
// which one node at a time inserts the batches of both.
func TestClickHouseLiveEvents(t *testing.T) {
	events := eventsURL(t, clickhousetest.Start(t), "live")
	nodes := serveNodes(t, 2, onLog("postgres"), func(c *app.Config) { c.Events.URL = events })
	liveOnNodes(t, nodes)
}

// inserted reports whether no event waits for ClickHouse. A story asks for events that
// another answer has shown to be processed.
func inserted(t *testing.T, s *server) (done bool) {
	t.Helper()
	err := s.DB.Read(t.Context()).NewSelect().TableExpr("event_outbox_state").ColumnExpr("last_row = inserted_row").Scan(t.Context(), &done)
	if err != nil {
		t.Fatal(err)
	}
	return done
}
