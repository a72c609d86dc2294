package ingestion_test

import (
	"context"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// startErasuresOnLog starts the erasures of a node on a log in partitions.
func startErasuresOnLog(t *testing.T, d *db.DB, log eventlog.Log, p erasure.Persons) *erasure.Service {
	t.Helper()
	s := erasure.New(d, nil, p, zap.NewNop())
	s.OnLog(log)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopErasures(t, s) })
	return s
}

// startPartition starts the worker of a partition.
func startPartition(t *testing.T, d *db.DB, log eventlog.Log, number int, e *erasure.Service, f pipeline.Follower, stages ...pipeline.Stage) *pipeline.Worker {
	t.Helper()
	cfg := workerConfig()
	base, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, log.Partition(number, 1), d, stages, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	base.RespectErasures(e)
	w := base.ForPartition(pipeline.Partition{Number: number, Token: 1, Log: log.Partition(number, 1), Erased: e.Partition(number)})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWorker(t, w) })
	if f != nil {
		startFollowing(t, log.Partition(number, 1), d, w, f)
	}
	return w
}

// acceptOnLog appends a request with one event of a distinct id.
func acceptOnLog(t *testing.T, log eventlog.Log, name, id string) {
	t.Helper()
	rec := ingestiontest.Record(`[{"event":"` + name + `","distinct_id":"` + id + `"}]`)
	rec.RequestID = [16]byte{byte(counter.Add(1)), 7}
	parts, _ := event.NewSplitter(func(p int64, id string) int { return eventlog.PartitionOf(p, id, log.Partitions()) }).Split(&rec, nil)
	if err := log.Append(t.Context(), []eventlog.Part{eventlog.Part(parts[0])}); err != nil {
		t.Fatal(err)
	}
}

// An erasure on one node waits for a transaction of another node that does not know
// it, and the other node drops what was accepted before.
func TestErasureReachesOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		log := ingestiontest.NewMemoryLog(12)
		p := &removals{}
		here, there := startErasuresOnLog(t, d, log, p), erasure.New(d, nil, p, zap.NewNop())
		there.OnLog(log)
		s, f := &stage{db: d}, &follower{stage: stage{db: d}}
		reached, proceed := make(chan struct{}, 1), make(chan struct{})
		w := startPartition(t, d, log, eventlog.PartitionOf(1, "u", 12), there, f, pausing(reached, proceed), s)
		acceptOnLog(t, log, "running", "u")
		<-reached
		acceptOnLog(t, log, "waiting", "u")
		erased := make(chan error, 1)
		go func() {
			erased <- here.Erase(context.Background(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true})
		}()
		if d.Postgres() {
			eventually(t, "the erasure waits for the transaction", func() bool {
				var n int
				row := d.Read(t.Context()).QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
					AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
				return row.Scan(&n) == nil && n > 0
			})
		}
		if len(p.list()) > 0 {
			t.Error("erased while a transaction was running that does not know it")
		}
		close(proceed)
		if err := <-erased; err != nil {
			t.Fatal(err)
		}
		acceptOnLog(t, log, "after", "u")
		eventually(t, "all records", func() bool {
			stats, err := log.Partition(eventlog.PartitionOf(1, "u", 12), 1).Stats(t.Context())
			return err == nil && w.Status().Position.Seq == stats.Last
		})
		// SQLite runs the transactions of both one after the other: the waiting event may
		// come before the erasure.
		if got := slices.DeleteFunc(s.list(), func(n string) bool { return n == "waiting" && !d.Postgres() }); !slices.Equal(got, []string{"running", "after"}) {
			t.Errorf("processed %q", got)
		}
		eventually(t, "the follower", func() bool { got := f.list(); return len(got) > 0 && got[len(got)-1] == "after" })
		for i := range log.Partitions() {
			records := log.Records(i)
			if !slices.ContainsFunc(records, event.IsErasure) {
				t.Errorf("partition %d has no record of the erasure", i)
			}
		}
		if got := p.list(); len(got) != 1 || got[0].DistinctIDs[0] != "u" {
			t.Errorf("removed %+v", got)
		}
	})
}

// A database that was restored from before an erasure carries it out once, from the
// records of the partitions, before it processes them.
func TestErasureIsRecoveredFromPartitions(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		log := ingestiontest.NewMemoryLog(12)
		acceptOnLog(t, log, "before", "u")
		acceptOnLog(t, log, "other", "v")
		first := startErasuresOnLog(t, dbtest.SQLite(t), log, &removals{})
		if err := first.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}); err != nil {
			t.Fatal(err)
		}
		acceptOnLog(t, log, "after", "u")
		p := &removals{}
		e := erasure.New(d, nil, p, zap.NewNop())
		e.OnLog(log)
		s := &stage{db: d}
		check := namedStage{"check", func(context.Context, []*sdk.Event) error {
			if len(p.list()) != 1 {
				t.Errorf("%d erasures are carried out before the first event", len(p.list()))
			}
			return nil
		}}
		if eventlog.PartitionOf(1, "u", 12) == eventlog.PartitionOf(1, "v", 12) {
			t.Fatal("both are in one partition")
		}
		for _, id := range []string{"u", "v"} {
			startPartition(t, d, log, eventlog.PartitionOf(1, id, 12), e, nil, check, s)
		}
		eventually(t, "the other events", func() bool { got := s.list(); return slices.Contains(got, "other") && slices.Contains(got, "after") })
		if got := s.list(); len(got) != 2 {
			t.Errorf("processed %q", got)
		}
	})
}
