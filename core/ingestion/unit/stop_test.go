package unit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/sdk"
)

// stuck is a stage that does not end before its context, as a statement behind a lock.
type stuck struct{ on, running atomic.Bool }

func (*stuck) Name() string { return "stuck" }

func (s *stuck) Process(ctx context.Context, _ []*sdk.Event) error {
	if !s.on.Load() {
		return nil
	}
	s.running.Store(true)
	<-ctx.Done()
	return ctx.Err()
}

// A transaction that does not end delays the stop of its partition by a moment only. The
// next owner stores its events.
func TestStopRollsBack(t *testing.T) {
	t.Parallel()
	d, log := dbtest.Postgres(t), ingestiontest.NewMemoryLog(1)
	stage := &stuck{}
	stage.on.Store(true)
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	w, err := pipeline.NewWorker(pipeline.DefaultConfig(), event.DefaultLimits(), log.Partition(0, 0), d, []pipeline.Stage{pipeline.EventStage(e, nil), stage}, e,
		pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := &shares{}
	set := unit.NewSet(unit.Dependencies{Log: log, Shares: s, Worker: w, Logger: zap.NewNop()})
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fillLog(t, log, 1)
	stop := s.start(0, 1)
	eventually(t, "the transaction is stuck", stage.running.Load)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop(ctx)
	if ctx.Err() != nil {
		t.Fatal("the partition was stopped after its time only")
	}
	stage.on.Store(false)
	s.start(0, 2)
	waitForEvents(t, d, 100)
	if err := set.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
