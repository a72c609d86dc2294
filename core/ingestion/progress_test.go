package ingestion_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// late is a journal whose readers lag by an hour.
type late struct{ journal.Journal }

func (l late) Stats(ctx context.Context) (journal.Stats, error) {
	s, err := l.Journal.Stats(ctx)
	for i := range s.Readers {
		if s.Readers[i].Lag > 0 {
			s.Readers[i].OldestAt = time.Now().Add(-time.Hour)
		}
	}
	return s, err
}

func TestProgressOfALongBacklog(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	for range 200 {
		accept(t, j, "a", "b")
	}
	gate := make(chan struct{})
	s := &stage{db: d, fail: func([]*sdk.Event) error { <-gate; return nil }}
	cfg := workerConfig()
	cfg.Worker.MaxEvents = 10
	core, logs := observer.New(zap.InfoLevel)
	w, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, late{j}, d, []pipeline.Stage{s}, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWorker(t, w) })
	eventually(t, "that it is behind", func() bool { return w.Progress().State == pipeline.CatchingUp })
	p := w.Progress()
	if p.RecordsBehind != 200 || p.BytesBehind <= 0 || p.OldestAt == nil || p.SecondsLeft != nil {
		t.Errorf("progress %+v", p)
	}
	for range 3 { // let a few batches through: then there is a rate
		gate <- struct{}{}
	}
	eventually(t, "a rate", func() bool {
		p := w.Progress()
		return p.EventsPerSecond > 0 && p.SecondsLeft != nil && *p.SecondsLeft > 0
	})
	close(gate)
	eventually(t, "that it has caught up", func() bool { p := w.Progress(); return p.State == pipeline.Current && p.RecordsBehind == 0 })
	if n := len(s.list()); n != 400 {
		t.Errorf("%d events", n)
	}
	eventually(t, "the lines about it", func() bool {
		said := ""
		for _, e := range logs.All() {
			said += e.Message + "\n"
		}
		return strings.Contains(said, "catching up") && strings.Contains(said, "caught up")
	})
	eventually(t, "that imports have passed over it", func() bool { return w.HistoricalProgress().State == pipeline.Current })
}

func TestProgressReportsWhyTheWorkerWaits(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	s := &stage{db: d, fail: func([]*sdk.Event) error { return fault.New(fault.Unavailable, "database_unavailable", "") }}
	accept(t, j, "a")
	w := startWorker(t, workerConfig(), j, d, nil, s)
	eventually(t, "that it waits", func() bool {
		p := w.Progress()
		return p.State == pipeline.Waiting && p.Waiting == "database_unavailable" && p.RecordsBehind == 1
	})
	s.failing(nil)
	eventually(t, "that it goes on", func() bool { p := w.Progress(); return p.State == pipeline.Current && p.RecordsBehind == 0 })
}

// skipping is a journal that keeps what its readers skip.
type skipping struct {
	journal.Journal

	mu sync.Mutex
	to map[string]uint64
}

// Skipped records that a reader has no work through a record.
func (s *skipping) Skipped(reader string, through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to[reader] = through
}

func (s *skipping) skipped(reader string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to[reader]
}

// TestImportLaneHasNoBacklogWithoutImports checks that the lane of imports tells the
// journal which records of the live lane it skips, before its cursor moves.
func TestImportLaneHasNoBacklogWithoutImports(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), &skipping{Journal: openJournal(t, t.TempDir()), to: map[string]uint64{}}
	for range 20 {
		accept(t, j, "a")
	}
	cfg := workerConfig()
	w, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, j, d, []pipeline.Stage{&stage{db: d}}, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWorker(t, w) })
	eventually(t, "that the lane skips the live records", func() bool { return j.skipped(pipeline.HistoricalReader) == 20 })
	eventually(t, "that it is not behind", func() bool { return w.HistoricalProgress().RecordsBehind == 0 })
	if n := j.skipped(pipeline.LiveReader); n != 0 {
		t.Errorf("the live lane skips through %d", n)
	}
}
