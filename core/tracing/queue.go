package tracing

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// maxQueued bounds the spans that wait for their export, about 4 MB of memory.
const maxQueued = 4096

// queue passes ended spans to a batch processor, which exports them in the
// background, and drops those beyond maxQueued. It counts each span once.
type queue struct {
	sdktrace.SpanProcessor
	waiting atomic.Int64

	exported, failed, dropped prometheus.Counter
}

func newQueue(out sdktrace.SpanExporter, reg prometheus.Registerer) *queue {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_traces_spans_total",
		Help: "Recorded spans by result: exported, failed at the endpoint, or dropped because too many waited.",
	}, []string{"result"})
	if reg != nil {
		reg.MustRegister(spans)
	}
	q := &queue{exported: spans.WithLabelValues("exported"), failed: spans.WithLabelValues("failed"), dropped: spans.WithLabelValues("dropped")}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(exporter{out, q}, sdktrace.WithMaxQueueSize(maxQueued))
	return q
}

// OnEnd queues a span or drops it. It does not block.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) > maxQueued {
		q.waiting.Add(-1)
		q.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// exporter counts what it exports.
type exporter struct {
	sdktrace.SpanExporter
	queue *queue
}

func (e exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.queue.waiting.Add(-int64(len(spans)))
	if err != nil {
		e.queue.failed.Add(float64(len(spans)))
		return err
	}
	e.queue.exported.Add(float64(len(spans)))
	return nil
}
