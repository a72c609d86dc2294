package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/cluster"
)

// Two servers of a cluster see each other, the connections of each carry its id, and a
// server that stops is gone.
func TestClusterOfTwoServers(t *testing.T) {
	nodes := serveNodes(t, 2, func(cfg *app.Config) { cfg.Cluster.Enabled, cfg.Cluster.Name = true, "box" })
	status := func(s *server) (st cluster.Status) {
		code, raw, _ := s.request(t, http.MethodGet, s.AdminURL+"/api/cluster", "")
		if code != http.StatusOK {
			t.Fatalf("status %d: %s", code, raw)
		}
		if err := json.Unmarshal([]byte(raw), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	for _, s := range nodes {
		s.until(t, "both nodes are alive", func() bool {
			st := status(s)
			return len(st.Nodes) == 2 && st.Clustered && st.Nodes[0].State == "alive" && st.Nodes[1].State == "alive"
		})
	}
	first, second := status(nodes[0]), status(nodes[1])
	if first.Node == second.Node || first.Nodes[0].Name != "box" || first.Nodes[0].Version != "test" {
		t.Errorf("the servers are %+v and %+v", first, second)
	}
	var name string
	if err := nodes[0].DB.Pool().QueryRow(t.Context(), "SELECT current_setting('application_name')").Scan(&name); err != nil || !strings.HasSuffix(name, "/"+first.Node) {
		t.Errorf("application_name %q (%v) does not end in %s", name, err, first.Node)
	}
}
