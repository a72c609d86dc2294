package requestlog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/journal"
)

const (
	clockError    = time.Minute // the database is on this machine; half of what a slow read takes
	brokerTimeout = time.Second
)

// TestInspect looks at a log before it exists, with records, with owners, and from a
// database that belongs to another log.
func TestInspect(t *testing.T) {
	t.Parallel()
	brokers, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(brokers.Close)
	for name, url := range map[string]string{"kafka": "kafka://" + strings.Join(brokers.ListenAddrs(), ",") + "/events", "postgres": "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inspectLog(t, url)
		})
	}
}

func inspectLog(t *testing.T, url string) {
	cfg := requestlog.DefaultConfig()
	cfg.URL, cfg.Partitions, cfg.AcceptWeakTopic = url, 3, true
	database := db.Config{URL: dbtest.EmptyPostgresURL(t)}
	look := func(what, want string) {
		t.Helper()
		r, err := requestlog.Inspect(t.Context(), cfg, database, "")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := fmt.Sprintf("exists %v, ends %v, other %v, behind %v, processing %d, unowned %v", r.ID != "", r.Ends, r.Other != "", r.Behind, r.Processing, r.Unowned)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
		if r.Clock.Abs() > clockError {
			t.Errorf("%s: the clocks differ by %s", what, r.Clock)
		}
		if weak := len(r.Weaknesses) > 0; url == "postgres" && r.ID != "" && !weak {
			t.Errorf("%s: a server with fsync off has no weaknesses", what)
		}
	}
	nothing := "exists false, ends [], other false, behind map[], processing 0, unowned []"
	look("without a schema", nothing)
	d, err := db.Open(t.Context(), database, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("without a log", nothing)
	log, err := requestlog.Open(t.Context(), cfg, d, nil, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.WithoutCancel(t.Context())) })
	if err := log.Register(t.Context(), "worker", journal.Begin); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := log.Append(t.Context(), []eventlog.Part{{Partition: 0, Data: []byte("a")}, {Partition: 2, Data: []byte("b")}}); err != nil {
			t.Fatal(err)
		}
	}
	look("without servers", "exists true, ends [5 0 5], other false, behind map[worker:10], processing 0, unowned [0 1 2]")
	for _, statement := range []string{
		"INSERT INTO cluster_nodes (id, name, version, roles, address, takes, draining, beat) VALUES ('a', 'a', '', '{}', '', '{}', false, 1), ('b', 'b', '', '{}', '', '{}', false, 1)",
		"UPDATE cluster_nodes SET seen_at = now() - interval '1 minute' WHERE id = 'b'",
		"INSERT INTO cluster_leases (name, node, token) VALUES ('partitions/0', 'a', 1), ('partitions/1', 'a', 1), ('partitions/2', 'b', 1), ('jobs/replays', 'a', 1)",
	} {
		if _, err := d.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	look("with a dead server", "exists true, ends [5 0 5], other false, behind map[worker:10], processing 1, unowned [2]")
	if _, err := d.Pool().Exec(t.Context(), "UPDATE event_logs SET id = 'other'"); err != nil {
		t.Fatal(err)
	}
	look("of another database", "exists true, ends [5 0 5], other true, behind map[], processing 0, unowned []")
}

// TestInspectWithoutBrokers names the brokers that do not answer.
func TestInspectWithoutBrokers(t *testing.T) {
	t.Parallel()
	cfg := requestlog.DefaultConfig()
	cfg.URL = "kafka://127.0.0.1:9/events"
	ctx, cancel := context.WithTimeout(t.Context(), brokerTimeout)
	defer cancel()
	r, err := requestlog.Inspect(ctx, cfg, db.Config{}, "")
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:9") || r.Name != "topic events on 127.0.0.1:9" {
		t.Errorf("%q: %v", r.Name, err)
	}
}
