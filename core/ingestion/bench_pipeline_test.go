package ingestion_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/warning"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// namedStage is a stage made of a function.
type namedStage struct {
	name    string
	process func(ctx context.Context, batch []*sdk.Event) error
}

func (s namedStage) Name() string { return s.name }
func (s namedStage) Process(ctx context.Context, batch []*sdk.Event) error {
	return s.process(ctx, batch)
}

// dataStages are persons and the event store.
func dataStages(tb testing.TB, d *db.DB) ([]pipeline.Stage, *events.Service) {
	tb.Helper()
	p := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	return []pipeline.Stage{
		namedStage{"persons", func(ctx context.Context, batch []*sdk.Event) error {
			warnings, err := p.Process(ctx, batch)
			for _, w := range warnings {
				warning.Add(ctx, warning.Warning{ProjectID: w.ProjectID, Type: w.Type, EventUUID: w.EventUUID, Details: w.Details})
			}
			return err
		}},
		namedStage{"events", func(ctx context.Context, batch []*sdk.Event) error {
			_, err := e.Process(ctx, batch)
			return err
		}},
	}, e
}

// fill appends n requests of 100 events each.
func fillJournal(tb testing.TB, j journal.Journal, n int) {
	tb.Helper()
	for i := range n {
		body := []byte{'['}
		for k := range 100 {
			if k > 0 {
				body = append(body, ',')
			}
			body = append(body, ingestiontest.EventBody(i*100+k)...)
		}
		rec := event.Record{ReceivedAt: ingestiontest.Arrival, ProjectID: 1, Items: append(body, ']')}
		if _, err := j.Append(context.Background(), rec.Append(nil)); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkPipeline measures the processing of 100,000 events of 1,000 persons, in
// requests of 100, by persons and the event store, and their delivery to a sink
// that commits every batch.
func BenchmarkPipeline(b *testing.B) {
	stores := map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			const requests = 1000
			var took, used time.Duration
			for range b.N {
				b.StopTimer()
				d, j := stores[dialect](b), openJournal(b, b.TempDir())
				fillJournal(b, j, requests)
				stages, known := dataStages(b, d)
				s := &fakeSink{name: "one", write: func(x *sdk.Batch) (sdk.WriteResult, error) { return x.Staged(0), nil }}
				before, begin := cpuTime(), time.Now()
				b.StartTimer()
				w := startWorker(b, ingestion.DefaultConfig(), j, d, known, stages...)
				cfg := ingestion.DefaultConfig()
				cfg.Deliver.Start = "begin"
				del := startDeliver(b, cfg, j, d, newSinks(s))
				waitFor(b, func() bool { return w.Status().Position.Count == requests*100 })
				waitFor(b, func() bool { return committed(b, j, "sink/one").Count == requests*100 })
				b.StopTimer()
				took, used = took+time.Since(begin), used+cpuTime()-before
				stopWorker(b, w)
				stopDeliver(b, del)
			}
			events := float64(b.N * requests * 100)
			b.ReportMetric(events/took.Seconds(), "events/s")
			b.ReportMetric(float64(used.Microseconds())/events, "cpu-µs/event")
		})
	}
}

// swallow is a sink that commits every batch and keeps none.
type swallow struct{ fakeSink }

func (*swallow) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	return b.Committed(), nil
}

// BenchmarkDeliver measures delivery to a sink that commits every batch.
func BenchmarkDeliver(b *testing.B) {
	const requests = 2000
	d, j := dbtest.SQLite(b), openJournal(b, b.TempDir())
	fillJournal(b, j, requests)
	cfg := ingestion.DefaultConfig()
	cfg.Deliver.Start = "begin"
	var used time.Duration
	b.ResetTimer()
	for i := range b.N {
		s := &swallow{fakeSink{name: fmt.Sprint("sink", i)}}
		before := cpuTime()
		del := startDeliver(b, cfg, j, d, newSinks(s))
		waitFor(b, func() bool { return committed(b, j, "sink/"+s.name).Count == requests*100 })
		used += cpuTime() - before
		stopDeliver(b, del)
	}
	events := float64(b.N * requests * 100)
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(used.Nanoseconds())/events, "cpu-ns/event")
}

func waitFor(tb testing.TB, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("not done in two minutes")
		}
	}
}
