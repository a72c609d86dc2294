package unit_test

import (
	"context"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
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
