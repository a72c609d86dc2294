package app_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// serveNodes starts n servers on one fresh Postgres at once and returns them with the
// credentials of the one that filled it.
func serveNodes(t *testing.T, n int, change ...func(*app.Config)) []*server {
	t.Helper()
	url := dbtest.PostgresURL(t)
	nodes := make([]*server, n)
	errs := make([]error, n)
	var starting sync.WaitGroup
	for i := range nodes {
		cfg, opts, lines := prepare(t, append([]func(*app.Config){func(c *app.Config) { c.Database.URL = url }}, change...)...)
		starting.Go(func() {
			nodes[i] = &server{Lines: lines}
			nodes[i].Server, errs[i] = app.Start(t.Context(), cfg, opts)
		})
	}
	starting.Wait()
	for i, s := range nodes {
		if errs[i] != nil {
			t.Errorf("start of node %d: %v", i, errs[i])
			continue
		}
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
	if t.Failed() {
		t.FailNow()
	}
	first := -1
	for i, s := range nodes {
		select {
		case <-s.Bootstrapped():
		case <-time.After(2 * time.Minute):
			t.Fatal("no first accounts")
		}
		if s.First == nil {
			continue
		}
		if first >= 0 {
			t.Fatalf("nodes %d and %d both made the first accounts", first, i)
		}
		first = i
	}
	if first < 0 {
		t.Fatal("no node made the first accounts")
	}
	for _, s := range nodes {
		s.ProjectKey, s.PersonalKey = nodes[first].First.ProjectKey, nodes[first].First.PersonalKey
		s.until(t, "the node has the first project", func() bool {
			managed, _, _ := s.request(t, http.MethodGet, s.URL+"/api/projects/1/feature_flags/", "")
			decided, _, _ := s.request(t, http.MethodPost, s.URL+"/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"u"}`)
			return managed == http.StatusOK && decided == http.StatusOK
		})
	}
	return nodes
}

// TestNodesStartTogether starts three servers on one empty Postgres: the schema and the
// first accounts are made once.
func TestNodesStartTogether(t *testing.T) {
	t.Parallel()
	nodes := serveNodes(t, 3)
	for table, want := range map[string]int{"organizations": 1, "projects": 1, "users": 1, "personal_keys": 1} {
		n, err := nodes[0].DB.Read(t.Context()).NewSelect().TableExpr(table).Count(t.Context())
		if err != nil || int(n) != want {
			t.Errorf("%s has %d rows (%v), want %d", table, n, err, want)
		}
	}
}

// decided returns the body of /decide for a distinct id.
func (s *server) decided(t *testing.T, distinctID string) string {
	t.Helper()
	_, answer, _ := s.request(t, http.MethodPost, s.URL+"/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"`+distinctID+`"}`)
	return answer
}

// TestNodesSeeChanges writes flags and properties of persons on one node: another one
// decides by them. With GUIDON_NODES_ROUNDS the medians are compared with the promises, a
// second for flags and two for properties; other runs may be on a busy machine.
func TestNodesSeeChanges(t *testing.T) {
	t.Parallel()
	seeChanges(t)
}

// TestClusterSeesChanges does the same with the notifications of a cluster.
func TestClusterSeesChanges(t *testing.T) {
	t.Parallel()
	seeChanges(t, func(c *app.Config) { c.Cluster.Enabled = true })
}

// TestClusterWakesNodes polls so rarely that only a notification shows a change on
// another node: of a flag and of a key.
func TestClusterWakesNodes(t *testing.T) {
	t.Parallel()
	nodes := serveNodes(t, 2, func(c *app.Config) {
		c.Cluster.Enabled = true
		c.Flags.PollInterval, c.Auth.RefreshInterval = time.Hour, time.Hour
	})
	a, b := nodes[0], nodes[1]
	var key struct {
		ID    int
		Value string
	}
	if err := json.Unmarshal([]byte(a.mustManage(t, http.MethodPost, "/api/personal_api_keys/", `{"label":"l","scopes":["feature_flag:read"]}`)), &key); err != nil {
		t.Fatal(err)
	}
	reader := &server{Server: b.Server, PersonalKey: key.Value}
	reads := func() bool {
		status, _, _ := reader.request(t, http.MethodGet, b.URL+"/api/projects/1/feature_flags/", "")
		return status == http.StatusOK
	}
	b.until(t, "the other node accepts the key", reads)
	a.flag(t, "first", plain)
	b.until(t, "the other node decides the flag", func() bool { return strings.Contains(b.decided(t, "u"), `"first":true`) })
	a.mustManage(t, http.MethodDelete, fmt.Sprintf("/api/personal_api_keys/%d/", key.ID), "")
	b.until(t, "the other node refuses the revoked key", func() bool { return !reads() })
}

func seeChanges(t *testing.T, change ...func(*app.Config)) {
	nodes := serveNodes(t, 2, change...)
	a, b := nodes[0], nodes[1]
	rounds, err := strconv.Atoi(os.Getenv("GUIDON_NODES_ROUNDS"))
	measured := err == nil
	if !measured {
		rounds = 3
	}
	a.flag(t, "trying", planFilter("free"))
	a.flag(t, "paying", planFilter("paid"))
	var flags, persons []time.Duration
	for i := range rounds {
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond) // at any moment between two polls
		key := fmt.Sprintf("flag-%d", i)
		begin := time.Now()
		a.flag(t, key, plain)
		b.until(t, "the other node decides the flag", func() bool { return strings.Contains(b.decided(t, "u"), `"`+key+`":true`) })
		flags = append(flags, time.Since(begin))
		persons = append(persons, seenAfter(t, a, b, fmt.Sprintf("person-%d", i)))
	}
	if measured {
		checkMedian(t, "a flag", flags, time.Second)
		checkMedian(t, "$set", persons, 2*time.Second)
	}
}

func planFilter(plan string) string {
	return `{"groups":[{"properties":[{"key":"plan","type":"person","operator":"exact","value":"` + plan + `"}],"rollout_percentage":100}]}`
}

// seenAfter changes a property of a person that both nodes have in memory, through a,
// and returns after how long b decides by it.
func seenAfter(t *testing.T, a, b *server, id string) time.Duration {
	t.Helper()
	set := func(plan string) {
		a.capture(t, `{"event":"$set","distinct_id":"`+id+`","properties":{"$set":{"plan":"`+plan+`"}}}`)
	}
	set("free")
	b.until(t, "both nodes know the person", func() bool {
		return strings.Contains(a.decided(t, id), `"trying":true`) && strings.Contains(b.decided(t, id), `"trying":true`)
	})
	begin := time.Now()
	set("paid")
	b.until(t, "the other node decides by the property", func() bool { return strings.Contains(b.decided(t, id), `"paying":true`) })
	return time.Since(begin)
}

func checkMedian(t *testing.T, what string, took []time.Duration, promise time.Duration) {
	t.Helper()
	slices.Sort(took)
	n := len(took)
	t.Logf("%s on another node: median %s, p99 %s, longest %s of %d", what, took[n/2], took[(n*99-1)/100], took[n-1], n)
	if took[n/2] > promise {
		t.Errorf("%s: half of the changes took longer than %s on another node, promised is %s", what, took[n/2], promise)
	}
}
