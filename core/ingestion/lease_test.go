package ingestion_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
)

// commits counts the commits of cursors in a log.
type commits struct {
	reader.Log
	n atomic.Int64
}

func (c *commits) Commit(ctx context.Context, name string, p journal.Position) error {
	c.n.Add(1)
	return c.Log.Commit(ctx, name, p)
}

// startLeased starts the worker of a partition and a follower.
func startLeased(t *testing.T, d *db.DB, log reader.Log, s *stage, f *follower) (*pipeline.Worker, *pipeline.FollowerRunner) {
	t.Helper()
	cfg := workerConfig()
	cfg.Worker.Linger = 0
	base, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, log, d, []pipeline.Stage{s}, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	w := base.ForPartition(pipeline.Partition{Token: 1, Log: log})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWorker(t, w) })
	return w, startFollowing(t, log, d, w, f)
}

// Under a lease a commit of a cursor in the log is a transaction, so there is at most one
// a second and reader. A stop commits the end.
func TestLeasedCursorsAreCommittedSeldom(t *testing.T) {
	t.Parallel()
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(1)
	counted := &commits{Log: log.Partition(0, 1)}
	s, f := &stage{db: d}, &follower{stage: stage{db: d}}
	begin := time.Now()
	w, following := startLeased(t, d, counted, s, f)
	const events = 40
	for n := range events {
		acceptOnLog(t, log, strconv.Itoa(n), "u")
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "all events are stored and followed", func() bool { return len(s.list()) == events && len(f.list()) == events })
	const readers = 3 // two lanes and the follower
	if n, most := counted.n.Load(), readers*(2+int64(time.Since(begin)/reader.LeasedCommitInterval)); n > most {
		t.Errorf("%d commits in %s, want at most %d", n, time.Since(begin), most)
	}
	stopFollowing(t, following)
	stopWorker(t, w)
	stats, err := log.Partition(0, 0).Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range stats.Readers {
		if r.Name != pipeline.HistoricalReader && r.Position.Seq != events {
			t.Errorf("%s stopped at %d", r.Name, r.Position.Seq)
		}
	}
}

// Beside others a worker waits up to 10 s before its cursor moves over an import, which
// a follower behind it does not wait for.
func TestFollowerDoesNotWaitForSkippedRecords(t *testing.T) {
	t.Parallel()
	const partitions = 12
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(partitions)
	s, f := &stage{db: d}, &follower{stage: stage{db: d}}
	cfg := workerConfig()
	base, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, log.Partition(0, 0), d, []pipeline.Stage{s}, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	workers := make([]*pipeline.Worker, partitions)
	for n := range workers {
		workers[n] = base.ForPartition(pipeline.Partition{Number: n, Token: 1, Log: log.Partition(n, 1)})
		if err := workers[n].Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stopWorker(t, workers[n]) })
	}
	const id = "u"
	number := eventlog.PartitionOf(1, id, partitions)
	w := workers[number]
	time.Sleep(time.Second) // all run
	acceptOnLog(t, log, "live", id)
	eventually(t, "the live event", func() bool { return w.Status().Position.Seq == 1 })
	rec := ingestiontest.Record(`[{"event":"old","distinct_id":"` + id + `"}]`)
	rec.Historical = true
	if err := log.Append(t.Context(), []eventlog.Part{{Partition: number, Data: rec.Append(nil)}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the import", func() bool { return s.seen() == "live old" })
	part := log.Partition(number, 1)
	if _, err := part.Register(t.Context(), pipeline.FollowerReader(f), journal.Begin); err != nil {
		t.Fatal(err)
	}
	startFollowing(t, part, d, w, f)
	eventually(t, "the follower has the live event", func() bool { return f.seen() == "live" })
	if seq := w.Status().Position.Seq; seq != 1 {
		t.Errorf("the follower waited until the cursor was at %d", seq)
	}
}
