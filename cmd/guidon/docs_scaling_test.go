package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The configs of docs/scaling.md are those of nodes.
func TestScalingGuideConfigs(t *testing.T) {
	t.Parallel()
	blocks := fencedBlocks(t, "../../docs/scaling.md", "yaml")
	for _, block := range blocks {
		path := filepath.Join(t.TempDir(), "guidon.yaml")
		write(t, path, block)
		cfg, err := app.Load(path, []string{"POSTGRES_PASSWORD=a", "KAFKA_PASSWORD=b", "CLICKHOUSE_PASSWORD=c", "PAYLOAD_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})
		if err != nil || !cfg.Cluster.Enabled || !cfg.Journal.Shared() || cfg.Events.URL == "" {
			t.Errorf("%v\n%s", err, block)
		}
	}
	if len(blocks) == 0 {
		t.Error("there is no config")
	}
}

// The commands of docs/scaling.md move a server on SQLite with a local journal to a cluster.
func TestScalingGuideCommandsRun(t *testing.T) {
	longTest(t)
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	for i := range 3 {
		s.capture(t, "before", fmt.Sprint("u", i), "{}")
	}
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	s.expect(t, 1, "journal move", "set journal.url")
	brokers, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(brokers.Close)
	write(t, s.config(), fmt.Sprintf("database: {url: %q}\ncluster: {enabled: true}\njournal: {url: %q, partitions: 6}\n",
		dbtest.EmptyPostgresURL(t), "kafka://"+strings.Join(brokers.ListenAddrs(), ",")+"/guidon"))
	ran := 0
	for _, line := range commandLines(t, "../../docs/scaling.md") {
		args, ok := strings.CutPrefix(line, "guidon ")
		switch {
		case !ok:
			continue
		case args == "serve":
			s.start(t)
		case strings.HasPrefix(args, "journal move"):
			s.expect(t, 0, args, "of the journal")
		default:
			s.expect(t, 0, args)
		}
		ran++
	}
	if ran < 5 {
		t.Errorf("found only %d commands", ran)
	}
	s.capture(t, "after", "u1", "{}")
	until(t, func() string {
		if out := s.expect(t, 0, "cluster status -o json"); !strings.Contains(out, `"clustered": true`) {
			return out
		}
		return ""
	})
	var page struct{ Results []any }
	if s.get(t, "/api/projects/1/events/?event=before", &page); len(page.Results) != 3 {
		t.Errorf("%d events of the time before", len(page.Results))
	}
}
