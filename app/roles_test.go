package app_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// readerOf makes a user of Postgres who may only read, and returns the URL with it.
func (s *server) readerOf(t *testing.T, postgres string) string {
	t.Helper()
	u, err := url.Parse(postgres)
	if err != nil {
		t.Fatal(err)
	}
	name := "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, sql := range []string{
		"CREATE ROLE " + name + " LOGIN PASSWORD 'reader'", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + name,
	} {
		if _, err := s.DB.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY " + name, "DROP ROLE " + name} {
			if _, err := s.DB.Pool().Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Log(err)
			}
		}
	})
	q := u.Query()
	q.Del("user") // it would win over that of the URL
	u.User, u.RawQuery = url.UserPassword(name, "reader"), q.Encode()
	if c, err := pgx.Connect(t.Context(), u.String()); err != nil {
		t.Fatal(err)
	} else {
		var user string
		if err := c.QueryRow(t.Context(), "SELECT current_user").Scan(&user); err != nil || user != name {
			t.Fatalf("the user is %q: %v", user, err)
		}
		_ = c.Close(t.Context())
	}
	return u.String()
}

// served compares the status of a request with whether the server has the role.
func (s *server) served(t *testing.T, method, path, body, role string, has bool) {
	t.Helper()
	status, answer, _ := s.request(t, method, s.URL+path, body)
	refused := status == http.StatusServiceUnavailable && strings.Contains(answer, `"role_missing"`) && strings.Contains(answer, "role "+role)
	if has && status != http.StatusOK || !has && !refused {
		t.Errorf("%s %s: %d %s, want the role %s: %v", method, path, status, answer, role, has)
	}
}

// servedRoles asks for a path of each role with a public address.
func (s *server) servedRoles(t *testing.T, roles ...string) {
	t.Helper()
	has := strings.Join(roles, " ")
	s.served(t, "POST", "/capture/", `{"api_key":"`+s.ProjectKey+`","event":"e","distinct_id":"u"}`, "capture", strings.Contains(has, "capture"))
	s.served(t, "POST", "/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"u"}`, "decide", strings.Contains(has, "decide"))
	s.served(t, "GET", "/api/projects/1/feature_flags/local_evaluation", "", "decide", strings.Contains(has, "decide"))
	s.served(t, "GET", "/api/projects/1/feature_flags/", "", "manage", strings.Contains(has, "manage"))
	s.served(t, "GET", "/openapi.yaml", "", "", true)
}

// TestDecideOnly runs a server that only decides, for which reading the database is
// enough: it follows changes, refuses everything else, and decides from its snapshot
// after a restart without the database.
func TestDecideOnly(t *testing.T) {
	t.Parallel()
	postgres := dbtest.PostgresURL(t)
	all := serve(t, func(c *app.Config) { c.Database.URL, c.Cluster.Enabled = postgres, true })
	all.flag(t, "first", plain)
	proxy := newTCPProxy(t, all.readerOf(t, postgres))
	data := filepath.Join(t.TempDir(), "data")
	change := func(c *app.Config) {
		c.Database.URL, c.DataDir, c.Cluster.Enabled, c.Cluster.Name, c.Roles = proxy.url, data, true, "edge", []string{"decide"}
		c.Flags.PollInterval, c.Plugins.Instances = time.Minute, nil
	}
	edge := serveExisting(t, change)
	edge.ProjectKey, edge.PersonalKey = all.ProjectKey, all.PersonalKey
	edge.servedRoles(t, "decide")
	all.flag(t, "second", plain)
	edge.until(t, "a change is followed", func() bool { return strings.Contains(edge.decided(t, "u"), `"second":true`) })
	edge.until(t, "it sees itself and the other node", func() bool {
		st := edge.clusterStatus(t)
		return len(st.Nodes) == 2 && strings.Contains(st.Nodes[0].Name+st.Nodes[1].Name, "edge")
	})
	edge.until(t, "the other node sees itself", func() bool {
		st := all.clusterStatus(t)
		for _, n := range st.Nodes {
			if strings.Contains(n.Name, "edge") {
				t.Fatalf("%s has written itself to the database", n.Name)
			}
		}
		return len(st.Nodes) == 1
	})
	edge.until(t, "the snapshot has the flags", func() bool {
		raw, _ := os.ReadFile(filepath.Join(data, "standby.snapshot"))
		return strings.Contains(string(raw), `"second"`)
	})
	if err := edge.Stop(); err != nil {
		t.Fatal(err)
	}
	proxy.block(true)
	edge = serveExisting(t, change, func(c *app.Config) { c.Flags.PollInterval = 100 * time.Millisecond })
	edge.ProjectKey, edge.PersonalKey = all.ProjectKey, all.PersonalKey
	edge.servedRoles(t, "decide")
	if answer := edge.decided(t, "u"); !strings.Contains(answer, `"second":true`) {
		t.Errorf("without the database: %s", answer)
	}
	status, answer, _ := edge.request(t, "GET", edge.AdminURL+"/_readiness", "")
	if status != http.StatusOK || !strings.Contains(answer, "serving from the snapshot") || strings.Contains(answer, `"journal"`) || strings.Contains(answer, `"ingestion"`) {
		t.Errorf("readiness without the database: %d %s", status, answer)
	}
	proxy.block(false)
	all.flag(t, "third", plain)
	edge.until(t, "the database is read again", func() bool { return strings.Contains(edge.decided(t, "u"), `"third":true`) })
}

// TestDecideOnlyNeedsTheSchema refuses to start on a database that another server has
// not prepared.
func TestDecideOnlyNeedsTheSchema(t *testing.T) {
	t.Parallel()
	cfg, opts, _ := prepare(t, func(c *app.Config) { c.Database.URL, c.Roles = dbtest.EmptyPostgresURL(t), []string{"decide"} })
	s, err := app.Start(t.Context(), cfg, opts)
	if err == nil {
		_ = s.Stop()
	}
	if err == nil || !strings.Contains(err.Error(), "has no guidon schema") {
		t.Errorf("start: %v", err)
	}
}

// TestEdgeAndBack has one server that faces clients and one that works behind it, on one
// database and one log.
func TestEdgeAndBack(t *testing.T) {
	t.Parallel()
	postgres, log := dbtest.PostgresURL(t), startBrokers(t)
	with := func(name string, roles ...string) func(*app.Config) {
		return func(c *app.Config) {
			onLog(log)(c)
			c.Database.URL, c.Cluster.Name, c.Roles = postgres, name, roles
		}
	}
	back := serve(t, with("back", "manage", "process", "deliver"))
	edge := serveExisting(t, with("edge", "capture", "decide"))
	edge.ProjectKey, edge.PersonalKey = back.ProjectKey, back.PersonalKey
	back.flag(t, "paying", planFilter("paid"))
	edge.until(t, "the edge knows the flag", func() bool { return strings.Contains(edge.decided(t, "u"), `"paying":false`) })
	edge.servedRoles(t, "capture", "decide")
	back.servedRoles(t, "manage")
	edge.capture(t, `{"event":"$set","distinct_id":"ada","properties":{"$set":{"plan":"paid"}}}`)
	edge.until(t, "the property decides at the edge", func() bool { return strings.Contains(edge.decided(t, "ada"), `"paying":true`) })
	back.until(t, "the back has all partitions, and the edge has no work", func() bool {
		st := back.clusterStatus(t)
		if len(st.Nodes) != 2 {
			return false
		}
		b, e := st.Nodes[0], st.Nodes[1]
		return b.Name == "back" && len(b.Partitions) == 6 && len(b.Jobs) > 0 && strings.Join(b.Roles, " ") == "manage process deliver" &&
			len(e.Partitions)+len(e.Jobs) == 0 && strings.Join(e.Roles, " ") == "capture decide"
	})
	for _, c := range []struct {
		node         *server
		shows, hides string
	}{{edge, `"journal"`, `"ingestion"`}, {back, `"ingestion"`, ""}} {
		status, answer, _ := c.node.request(t, "GET", c.node.AdminURL+"/_readiness", "")
		if status != http.StatusOK || !strings.Contains(answer, c.shows) || c.hides != "" && strings.Contains(answer, c.hides) {
			t.Errorf("readiness: %d %s", status, answer)
		}
	}
}
