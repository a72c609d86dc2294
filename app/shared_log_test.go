package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// startBrokers starts brokers in this process and returns the URL of a log.
func startBrokers(t *testing.T) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return "kafka://" + strings.Join(c.ListenAddrs(), ",") + "/guidon"
}

// onLog makes a server one of a cluster with a log of 6 partitions.
func onLog(url string) func(*app.Config) {
	return func(c *app.Config) {
		c.Cluster.Enabled, c.Journal.URL, c.Journal.Partitions, c.Plugins.Instances = true, url, 6, nil
		c.Journal.AcceptWeakTopic = true // the Postgres of tests does not sync
	}
}

// clusterStatus returns the answer of /api/cluster.
func (s *server) clusterStatus(t *testing.T) (st cluster.Status) {
	t.Helper()
	code, raw, _ := s.request(t, http.MethodGet, s.AdminURL+"/api/cluster", "")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, raw)
	}
	if err := json.Unmarshal([]byte(raw), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// stored returns how many events are stored, and how many different ones.
func (s *server) stored(t *testing.T) (all, different int) {
	t.Helper()
	row := s.DB.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT uuid) FROM events")
	if err := row.Scan(&all, &different); err != nil {
		t.Fatal(err)
	}
	return all, different
}

// captureAs captures batches of events of many persons, each with $set of their number.
func (s *server) captureAs(t *testing.T, name string, batches int) (events int) {
	t.Helper()
	for i := range batches {
		var items []string
		for j := range 10 {
			items = append(items, fmt.Sprintf(`{"event":"%s","distinct_id":"u%d","properties":{"n":%d,"$set":{"%s":%d}}}`, name, (i+j)%40, i*10+j, name, i*10+j))
		}
		s.capture(t, strings.Join(items, ","))
		events += len(items)
	}
	return events
}

// Two servers share a log: events that either accepts are stored once, also after one of
// them has stopped and the other has taken its partitions over.
func TestTwoServersOnOneLog(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"kafka": startBrokers(t), "postgres": "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			twoServersOnOneLog(t, url)
		})
	}
}

func twoServersOnOneLog(t *testing.T, url string) {
	nodes := serveNodes(t, 2, onLog(url))
	want := 0
	var sum sync.Mutex
	var capturing sync.WaitGroup
	for i, s := range nodes {
		capturing.Go(func() {
			n := s.captureAs(t, fmt.Sprint("first", i), 20)
			sum.Lock()
			defer sum.Unlock()
			want += n
		})
	}
	capturing.Wait()
	for _, s := range nodes {
		s.until(t, "all events are stored", func() bool { all, _ := s.stored(t); return all >= want })
		s.until(t, "partitions are divided", func() bool {
			for _, n := range s.clusterStatus(t).Nodes {
				if len(n.Partitions) != 3 {
					return false
				}
			}
			return true
		})
	}
	checkPartitionsAreShown(t, nodes)
	want -= eraseOnBoth(t, nodes)
	if err := nodes[0].Stop(); err != nil {
		t.Fatal(err)
	}
	want += nodes[1].captureAs(t, "second", 20)
	nodes[1].until(t, "all events are stored after a server has stopped", func() bool { all, _ := nodes[1].stored(t); return all >= want })
	if all, different := nodes[1].stored(t); all != want || different != want {
		t.Errorf("%d events of %d are stored, %d different", all, want, different)
	}
	nodes[1].until(t, "the other server has all partitions", func() bool {
		st := nodes[1].clusterStatus(t)
		return len(st.Nodes) == 1 && len(st.Nodes[0].Partitions) == 6
	})
}

// checkPartitionsAreShown checks that each server shows the partitions: all of them with
// their owner and readers in /api/cluster, its own in /_readiness and /metrics.
func checkPartitionsAreShown(t *testing.T, nodes []*server) {
	t.Helper()
	for _, s := range nodes {
		s.until(t, "the partitions have owners and readers", func() bool {
			var answer struct {
				Partitions []struct {
					Node    string
					Readers []struct {
						RecordsBehind int64 `json:"records_behind"`
					}
				}
			}
			_, raw, _ := s.request(t, http.MethodGet, s.AdminURL+"/api/cluster", "")
			if err := json.Unmarshal([]byte(raw), &answer); err != nil {
				t.Fatal(err)
			}
			for _, p := range answer.Partitions {
				if p.Node == "" || len(p.Readers) != 3 || p.Readers[0].RecordsBehind+p.Readers[1].RecordsBehind+p.Readers[2].RecordsBehind > 0 {
					return false
				}
			}
			return len(answer.Partitions) == 6
		})
		_, metrics, _ := s.request(t, http.MethodGet, s.AdminURL+"/metrics", "")
		if !strings.Contains(metrics, "\nguidon_log_append_seconds_count ") {
			t.Error("/metrics lacks the metrics of the log")
		}
	}
	nodes[0].until(t, "the servers are ready and own all partitions", func() bool {
		owned := map[int]int{}
		for _, s := range nodes {
			var ready struct {
				Status    string
				Ingestion struct{ Partitions []struct{ Partition int } }
			}
			_, raw, _ := s.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
			if err := json.Unmarshal([]byte(raw), &ready); err != nil {
				t.Fatalf("readiness %s, %v", raw, err)
			}
			if ready.Status != "ready" {
				return false
			}
			for _, p := range ready.Ingestion.Partitions {
				owned[p.Partition]++
			}
		}
		return len(owned) == 6
	})
}

// eraseOnBoth erases a person through each server, and captures an event of each
// afterwards, which stays. It returns by how many events there are fewer.
func eraseOnBoth(t *testing.T, nodes []*server) (fewer int) {
	t.Helper()
	count := func(id string) (n int) {
		row := nodes[1].DB.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE distinct_id = ?", id)
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, s := range nodes {
		id := fmt.Sprint("u", i)
		before := count(id)
		code, answer := s.manage(t, http.MethodDelete, "/api/projects/1/persons/"+s.personID(t, id)+"/?delete_events=true")
		if code/100 != 2 || before == 0 {
			t.Fatalf("deletion of %s with %d events: %d %s", id, before, code, answer)
		}
		if n := count(id); n != 0 {
			t.Errorf("%d events of %s are left", n, id)
		}
		nodes[1-i].capture(t, `{"event":"again","distinct_id":"`+id+`"}`)
		s.until(t, "an event after the erasure is stored", func() bool { return count(id) == 1 })
		fewer += before - 1
	}
	return fewer
}

// A server that cannot use the log does not start, and says why.
func TestSharedLogIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(c *app.Config)
		want   []string
	}{
		{"without a cluster", func(c *app.Config) { c.Database.URL, c.Cluster.Enabled = "postgres://localhost/guidon", false }, []string{"journal.url", "cluster.enabled"}},
		{"on SQLite", func(c *app.Config) { c.Database.URL = "" }, []string{"journal.url", "database.url"}},
		{"with a wrong scheme", func(c *app.Config) { c.Journal.URL = "redis://localhost" }, []string{"journal.url", "kafka://"}},
		{"with an address of Postgres", func(c *app.Config) { c.Journal.URL = "postgres://localhost/guidon" }, []string{"journal.url", "database.url"}},
		{"in Postgres with too many partitions", func(c *app.Config) { c.Journal.URL, c.Journal.Partitions = "postgres", 1000 }, []string{"journal.partitions"}},
		{"with events in ClickHouse, on SQLite", func(c *app.Config) {
			*c = app.DefaultConfig()
			c.Events.URL = "clickhouse://localhost/guidon"
		}, []string{"events.url", "database.url"}},
		{"without partitions", func(c *app.Config) { c.Journal.Partitions = 0 }, []string{"journal.partitions"}},
	} {
		cfg := app.DefaultConfig()
		onLog("kafka://localhost/guidon")(&cfg)
		cfg.Database.URL = "postgres://localhost/guidon"
		c.change(&cfg)
		err := cfg.Validate()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %s", c.name, err, want)
			}
		}
	}
}

// startOnLog starts a server that must fail, and returns its error.
func startOnLog(t *testing.T, database, log string, change ...func(*app.Config)) error {
	t.Helper()
	cfg, opts, _ := prepare(t, append([]func(*app.Config){onLog(log), func(c *app.Config) { c.Database.URL = database }}, change...)...)
	s, err := app.Start(t.Context(), cfg, opts)
	if err == nil {
		_ = s.Stop()
	}
	return err
}

// A log that cannot be reached, and a database of another log, end the start with an
// error that names the cause.
func TestSharedLogIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	database := dbtest.PostgresURL(t)
	err := startOnLog(t, database, "kafka://127.0.0.1:1/guidon", func(c *app.Config) { c.Journal.StartTimeout = time.Second })
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("without a broker: %v", err)
	}
	first := startBrokers(t)
	running := serveExisting(t, onLog(first), func(c *app.Config) { c.Database.URL = database })
	other := startBrokers(t)
	accepting := func(c *app.Config) { c.Journal.AcceptOtherLog = true }
	err = startOnLog(t, database, other, accepting)
	if err == nil || !strings.Contains(err.Error(), "servers of this database still use another log") {
		t.Errorf("with another log while a server runs: %v", err)
	}
	if err := startOnLog(t, database, first); err != nil {
		t.Errorf("with the log after another one was refused: %v", err)
	}
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	err = startOnLog(t, database, other)
	if err == nil || !strings.Contains(err.Error(), "this database belongs to the log") {
		t.Errorf("with another log: %v", err)
	}
	if err := startOnLog(t, database, other, accepting); err != nil {
		t.Errorf("with another log that is accepted: %v", err)
	}
}
