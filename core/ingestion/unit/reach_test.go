package unit_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/core/journal"
)

// withholding notes whether the node withholds itself.
type withholding struct {
	shares
	on atomic.Bool
}

func (w *withholding) Withhold(_ string, on bool) { w.on.Store(on) }

// A node that does not reach the log gives its partitions to others until it does.
func TestUnreachableLog(t *testing.T) {
	t.Parallel()
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(2)
	w, err := pipeline.NewWorker(pipeline.DefaultConfig(), event.DefaultLimits(), nil, d, nil, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	var s withholding
	var reachable atomic.Bool
	set := unit.NewSet(unit.Dependencies{Log: log, Shares: &s, Worker: w, Reachable: reachable.Load, Logger: zap.NewNop()})
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node withholds itself", s.on.Load)
	reachable.Store(true)
	eventually(t, "the node takes partitions again", func() bool { return !s.on.Load() })
	if err := set.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// refusing is a log in which no reader can register for a while.
type refusing struct {
	*ingestiontest.MemoryLog
	left, asked atomic.Int32
}

func (r *refusing) Register(ctx context.Context, reader string, from journal.Start) error {
	r.asked.Add(1)
	if r.left.Add(-1) >= 0 {
		return errors.New("the database is away")
	}
	return r.MemoryLog.Register(ctx, reader, from)
}

// following notes when the node begins to follow the partitions.
type following struct {
	shares
	at func()
}

func (f *following) Follow(string, int, func(int, int64) func(context.Context)) { f.at() }

// A node starts no partition before its followers have a cursor in each.
func TestCursorsBeforeUnits(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	log := &refusing{MemoryLog: ingestiontest.NewMemoryLog(2)}
	log.left.Store(3)
	w, err := pipeline.NewWorker(pipeline.DefaultConfig(), event.DefaultLimits(), nil, d, nil, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	var began atomic.Bool
	s := &following{at: func() {
		if asked := log.asked.Load(); asked != 4 {
			t.Errorf("followed after %d attempts to register", asked)
		}
		began.Store(true)
	}}
	set := unit.NewSet(unit.Dependencies{Log: log, Shares: s, Worker: w, Followers: []pipeline.Follower{newFollower(t, d)}, Logger: zap.NewNop()})
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node follows the partitions", began.Load)
	for n := range log.Partitions() {
		if stats, err := log.Partition(n, 0).Stats(t.Context()); err != nil || len(stats.Readers) != 1 {
			t.Errorf("readers of partition %d: %v, %v", n, stats.Readers, err)
		}
	}
	if err := set.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
