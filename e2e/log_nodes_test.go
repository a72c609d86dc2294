//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// node is a server of a cluster, without sinks.
type node struct {
	*software
	*server
}

// newNode returns a node that has not started, with further variables of the environment.
func newNode(t *testing.T, name, database, log string, environment ...string) *node {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	n := &node{server: &server{url: "http://" + address, admin: freeAddress(t)}}
	n.software = &software{name: name, dir: dir, command: append(append([]string{"env"}, environment...),
		"GUIDON_HTTP_ADDRESS="+address, "GUIDON_HTTP_ADMIN_ADDRESS="+n.admin, "GUIDON_DATA_DIR="+dir,
		"GUIDON_DATABASE_URL="+database, "GUIDON_CLUSTER_ENABLED=true", "GUIDON_CLUSTER_NAME="+name,
		"GUIDON_JOURNAL_URL="+log, "GUIDON_JOURNAL_ACCEPT_WEAK_TOPIC=true", "GUIDON_JOURNAL_PARTITIONS=6",
		binary(t), "serve",
	)}
	n.ready = func() error { return n.status(http.MethodGet, "/_readiness", nil, http.StatusOK) }
	return n
}

// readPrintedKeys waits for the keys that a first run prints.
func (n *node) readPrintedKeys(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "the first run has printed its keys", func() error {
		output, err := os.ReadFile(n.log())
		n.readKeys(output)
		if n.project == "" || n.personal == "" {
			return errors.Join(err, fmt.Errorf("output: %s", tail(output, 2000)))
		}
		return nil
	})
}

// terminate ends the node with SIGTERM and returns when it has ended.
func (n *node) terminate(t *testing.T) {
	t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.ended:
	case <-time.After(time.Minute):
		t.Fatal("the node does not end")
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

// partitions returns the number of partitions of each living node, by name.
func (n *node) partitions(personal string) (map[string]int, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+n.admin+"/api/cluster", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+personal)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, errors.Join(err, fmt.Errorf("status %d: %s", res.StatusCode, raw))
	}
	var st cluster.Status
	if err := json.Unmarshal(raw, &st); err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, one := range st.Nodes {
		if one.State == "alive" {
			out[one.Name] += len(one.Partitions)
		}
	}
	return out, nil
}

// writer captures the events of one person, one after the other, with its numbers and a
// pause between them. It repeats a request that was not answered with 200, at the next
// node; failed counts those that were answered with an error of the server.
func writer(stop <-chan struct{}, pause time.Duration, project, person string, nodes []*node, accepted, failed *atomic.Int64) (n int) {
	client := http.Client{Timeout: 30 * time.Second}
	for at := 0; ; {
		select {
		case <-stop:
			return n
		case <-time.After(pause):
		}
		body := fmt.Appendf(nil, `{"api_key":%q,"batch":[{"event":"e","distinct_id":%q,"uuid":%q,"properties":{"n":%d}}]}`, project, person, uuid.NewString(), n+1)
		for ; ; at++ {
			res, err := client.Post(nodes[at%len(nodes)].url+"/batch/", "application/json", bytes.NewReader(body))
			if err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if res.StatusCode == http.StatusOK {
					break
				}
				if res.StatusCode >= 500 {
					failed.Add(1)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		n++
		accepted.Add(1)
		at++
	}
}

// TestNodesOnKafka kills and stops nodes that share a log, while clients send to all of
// them: each accepted event is stored once, in the order of its person.
func TestNodesOnKafka(t *testing.T) {
	t.Parallel()
	_, address := startKafka(t)
	database := dbtest.PostgresURL(t)
	var nodes []*node
	for _, name := range []string{"one", "two"} {
		nodes = append(nodes, newNode(t, name, database, "kafka://"+address+"/nodes"))
		launch(t, nodes[len(nodes)-1].software)
	}
	nodes[0].readPrintedKeys(t)
	project, personal := nodes[0].project, nodes[0].personal
	owned := func(of *node, want map[string]int) func() error {
		return func() error {
			got, err := of.partitions(personal)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("got %v, want %v: %w", got, want, errors.Join(err, errors.New("not yet")))
			}
			return nil
		}
	}
	eventually(t, time.Minute, "the partitions are divided", owned(nodes[0], map[string]int{"one": 3, "two": 3}))

	stop, accepted := make(chan struct{}), &atomic.Int64{}
	var writers sync.WaitGroup
	counts := make([]int, 20)
	for i := range counts {
		writers.Go(func() {
			counts[i] = writer(stop, 0, project, fmt.Sprint("person", i), nodes, accepted, new(atomic.Int64))
		})
	}
	more := func(n int64) {
		t.Helper()
		from := accepted.Load()
		eventually(t, 2*time.Minute, "events are accepted", func() error {
			if got := accepted.Load(); got < from+n {
				return fmt.Errorf("%d since", got-from)
			}
			return nil
		})
	}
	more(500)
	nodes[0].kill(t)
	begin := time.Now()
	eventually(t, time.Minute, "the other node has all partitions", owned(nodes[1], map[string]int{"two": 6}))
	t.Logf("taken over %s after SIGKILL", time.Since(begin).Round(100*time.Millisecond))
	more(500)
	nodes[0].start(t)
	eventually(t, time.Minute, "the partitions are divided again", owned(nodes[0], map[string]int{"one": 3, "two": 3}))
	more(500)
	begin = time.Now()
	nodes[1].terminate(t)
	eventually(t, time.Minute, "the other node has all partitions", owned(nodes[0], map[string]int{"one": 6}))
	t.Logf("taken over %s after SIGTERM", time.Since(begin).Round(100*time.Millisecond))
	more(500)
	close(stop)
	writers.Wait()
	checkStored(t, database, counts)
}

// checkStored checks that the events 1 to n of each person are stored once, in their
// order.
func checkStored(t *testing.T, database string, counts []int) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{URL: database}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := 0
	for _, n := range counts {
		want += n
	}
	count := func() (n int, err error) {
		err = d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE event = 'e'").Scan(&n)
		return n, err
	}
	eventually(t, 2*time.Minute, "all events are stored", func() error {
		if n, err := count(); err != nil || n < want {
			return fmt.Errorf("%d of %d: %w", n, want, errors.Join(err, errors.New("not yet")))
		}
		return nil
	})
	var rows []struct {
		DistinctID string
		Properties string
	}
	if err := d.Read(t.Context()).NewRaw("SELECT distinct_id, properties FROM events WHERE event = 'e' ORDER BY id").Scan(t.Context(), &rows); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, row := range rows {
		var p struct{ N int }
		if err := json.Unmarshal([]byte(row.Properties), &p); err != nil {
			t.Fatal(err)
		}
		if next[row.DistinctID]++; p.N != next[row.DistinctID] {
			t.Fatalf("event %d of %s, want %d", p.N, row.DistinctID, next[row.DistinctID])
		}
	}
	if len(rows) != want {
		t.Errorf("%d events are stored of %d", len(rows), want)
	}
	t.Logf("%d events are stored once", len(rows))
}
