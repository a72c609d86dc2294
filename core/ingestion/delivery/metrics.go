package delivery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts the calls of sinks and their events.
type Metrics struct {
	delivered    *prometheus.CounterVec   // by sink
	calls        *prometheus.CounterVec   // by sink, outcome
	callTime     *prometheus.HistogramVec // by sink
	callSize     *prometheus.HistogramVec // by sink
	filtered     *prometheus.CounterVec   // by sink, reason
	emptyFlushes *prometheus.CounterVec   // by sink
}

// NewMetrics registers the metrics with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help}, append([]string{"sink"}, labels...))
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return f.NewHistogramVec(prometheus.HistogramOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help, Buckets: buckets}, []string{"sink"})
	}
	return &Metrics{
		delivered:    counter("deliver_events_total", "Events that a sink has confirmed."),
		calls:        counter("deliver_calls_total", "Answers of a sink to a batch.", "outcome"),
		callTime:     histogram("deliver_seconds", "Duration of a sink's write of a batch.", prometheus.ExponentialBuckets(0.001, 2, 16)),
		callSize:     histogram("deliver_batch_events", "Events in a batch for a sink.", prometheus.ExponentialBuckets(1, 4, 8)),
		filtered:     counter("deliver_skipped_events_total", "Events that the filters of a sink exclude.", "reason"),
		emptyFlushes: counter("deliver_empty_flushes_total", "Flushes of a sink that committed nothing."),
	}
}

// observeCall counts a call of a sink.
func (m *Metrics) observeCall(sink, outcome string, took time.Duration, events int) {
	m.callTime.WithLabelValues(sink).Observe(took.Seconds())
	m.callSize.WithLabelValues(sink).Observe(float64(events))
	m.calls.WithLabelValues(sink, outcome).Inc()
}
