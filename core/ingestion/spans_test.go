package ingestion_test

import (
	"context"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/tracing"
)

// spanKeeper keeps the exported spans.
type spanKeeper struct {
	mu    sync.Mutex
	spans tracetest.SpanStubs
}

func (k *spanKeeper) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (k *spanKeeper) Shutdown(context.Context) error { return nil }

// acceptTraced appends a request whose span is o.
func acceptTraced(t *testing.T, j journal.Journal, event string, o tracing.Origin) {
	t.Helper()
	rec := ingestiontest.Record(`[{"event":"` + event + `","distinct_id":"u"},{"event":"` + event + `","distinct_id":"v"}]`)
	rec.RequestID, rec.Trace = [16]byte{byte(counter.Add(1)), byte(counter.Load() >> 8)}, o
	if _, err := j.Append(context.Background(), rec.Append(nil)); err != nil {
		t.Fatal(err)
	}
}

// A batch of a sink links the requests of its own events, also those that it has only
// a part of.
func TestBatchesOfSinkLinkTheirRequests(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	first, second, third := tracing.Origin{1, 23: 1}, tracing.Origin{2, 23: 1}, tracing.Origin{3, 23: 1}
	acceptTraced(t, j, "a", first)
	acceptTraced(t, j, "b", tracing.Origin{})
	acceptTraced(t, j, "c", second)
	acceptTraced(t, j, "d", third)
	acceptTraced(t, j, "e", tracing.Origin{})
	keeper := &spanKeeper{}
	tr := tracing.New(tracing.Config{}, "test", keeper, nil)
	s := &fakeSink{name: "one"}
	s.props.MaxEvents = 5
	del := newDeliver(t, deliverConfig(), j, d, newSinks(s))
	del.Trace(tr)
	runDeliver(t, del)
	eventually(t, "all events", func() bool { return s.has() == "a a b b c c d d e e" })
	stopDeliver(t, del)
	tr.Shutdown(t.Context())
	if len(keeper.spans) != 2 {
		t.Fatalf("%d spans", len(keeper.spans))
	}
	for i, want := range [][]tracing.Origin{{first, second}, {second, third}} {
		links := keeper.spans[i].Links
		if len(links) != len(want) || keeper.spans[i].Parent.IsValid() {
			t.Fatalf("batch %d: links %v", i, links)
		}
		for n, o := range want {
			if links[n].SpanContext.TraceID() != o.SpanContext().TraceID() {
				t.Errorf("batch %d links %s", i, links[n].SpanContext.TraceID())
			}
		}
	}
}
