//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// TestDecideOnlyWritesNothing runs servers that may only read the database for more than
// a minute, so that each job that runs by itself has run: none tries to write, and none
// logs an error.
func TestDecideOnlyWritesNothing(t *testing.T) {
	t.Parallel()
	database := dbtest.PostgresURL(t)
	all := newNode(t, "all", database, "")
	launch(t, all.software)
	all.readPrintedKeys(t)
	for i, filters := range []string{`{"groups":[{"rollout_percentage":100}]}`, `{"groups":[{"properties":[{"key":"plan","value":"paid","type":"person"}]}]}`} {
		all.do(t, http.MethodPost, "/api/projects/@current/feature_flags/", map[string]any{"key": fmt.Sprint("flag", i), "active": true,
			"ensure_experience_continuity": true, "filters": json.RawMessage(filters)}, nil, http.StatusCreated)
	}
	reader := readerOf(t, database)
	config := writeFile(t, t.TempDir(), "guidon.yaml", "activity: {retention: 24h}\n")
	alone := newNode(t, "alone", reader, "", "GUIDON_ROLES=decide", "GUIDON_CONFIG="+config)
	clustered := newNode(t, "clustered", reader, "", "GUIDON_ROLES=decide")
	for i, v := range alone.command { // the later variable counts
		if v == "GUIDON_CLUSTER_ENABLED=true" {
			alone.command[i] = "GUIDON_CLUSTER_ENABLED=false"
		}
	}
	began := time.Now()
	nodes := []*node{alone, clustered}
	for _, n := range nodes {
		n.project, n.personal = all.project, all.personal
		launch(t, n.software)
	}
	writeFile(t, filepath.Dir(config), "guidon.yaml", "activity: {retention: 48h}\n")
	if err := alone.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for i := 0; time.Since(began) < 65*time.Second; i++ {
		for _, n := range nodes {
			n.useAsClient(t, i)
		}
		time.Sleep(time.Second)
	}
	for _, n := range nodes {
		n.terminate(t)
		n.checkLog(t, "error")
		text, err := os.ReadFile(n.log())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if isRefusal(line) {
				t.Errorf("%s tried to write: %s", n.name, line)
			}
		}
	}
	if text, err := os.ReadFile(alone.log()); err != nil || !strings.Contains(string(text), "config reloaded") {
		t.Errorf("the config was not reloaded: %v", err)
	}
	checkNoRefusals(t, reader)
}

// checkNoRefusals checks that Postgres refused no statement of a user for want of rights.
// A server of GUIDON_TEST_POSTGRES has its log elsewhere; then only the logs of the nodes
// tell.
func checkNoRefusals(t *testing.T, reader string) {
	t.Helper()
	u, err := url.Parse(reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := u.Query().Get("host")
	if os.Getenv("GUIDON_TEST_POSTGRES") != "" || !filepath.IsAbs(dir) {
		t.Log("the log of Postgres is not here: it was not checked")
		return
	}
	if err := deleteAs(t, reader); err == nil { // the log has this one, or the search is wrong
		t.Error("the user may write")
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("the log of Postgres: %v", err)
	}
	session := " " + u.Query().Get("user") + "@" + strings.TrimPrefix(u.Path, "/") + " "
	var refused []string
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, session) && isRefusal(line) {
			refused = append(refused, line)
		}
	}
	if len(refused) != 1 {
		t.Errorf("Postgres refused %d statements of servers that only read, want the one of the test: %s", len(refused)-1, refused)
	}
}

// deleteAs deletes rows without the right to.
func deleteAs(t *testing.T, reader string) error {
	t.Helper()
	c, err := pgx.Connect(t.Context(), reader)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	_, err = c.Exec(t.Context(), "DELETE FROM cluster_log")
	return err
}

// isRefusal reports whether a line of a log has an error of Postgres about rights.
func isRefusal(line string) bool {
	return strings.Contains(line, "read-only transaction") || strings.Contains(line, "permission denied")
}

// useAsClient sends the requests that a server with the role decide serves, and one that
// belongs to another server.
func (n *node) useAsClient(t *testing.T, i int) {
	t.Helper()
	id := fmt.Sprint("user", i)
	for _, r := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "/decide?v=3", fmt.Sprintf(`{"api_key":%q,"distinct_id":%q,"$anon_distinct_id":"anonymous"}`, n.project, id), http.StatusOK},
		{http.MethodPost, "/flags?v=2", fmt.Sprintf(`{"api_key":%q,"distinct_id":"$posthog_cookieless","timezone":"UTC"}`, n.project), http.StatusOK},
		{http.MethodPost, "/decide?v=3", `{"api_key":"phc_unknown","distinct_id":"u"}`, http.StatusUnauthorized},
		{http.MethodGet, "/api/feature_flag/local_evaluation?token=" + n.project, "", http.StatusOK},
		{http.MethodPost, "/capture/", fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"u"}`, n.project), http.StatusServiceUnavailable},
	} {
		req, err := http.NewRequest(r.method, n.url+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if r.method == http.MethodGet {
			req.Header.Set("Authorization", "Bearer "+n.personal)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != r.want {
			t.Fatalf("%s: %s answers %d, want %d", n.name, r.path, res.StatusCode, r.want)
		}
	}
}
