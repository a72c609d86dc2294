package pipeline

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/guidonhq/guidon/core/ingestion/reader"
)

// Metrics counts the events and transactions of the worker.
type Metrics struct {
	dropped    *prometheus.CounterVec // by reason
	changed    *prometheus.CounterVec // by reason
	processed  prometheus.Counter
	duplicates prometheus.Counter
	batchSize  prometheus.Histogram
	batchTime  prometheus.Histogram
	retries    *prometheus.CounterVec // by cause
}

// NewMetrics registers the metrics with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help}
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help, Buckets: buckets}
	}
	return &Metrics{
		dropped:    f.NewCounterVec(counter("events_dropped_total", "Accepted events that were dropped."), []string{"reason"}),
		changed:    f.NewCounterVec(counter("events_changed_total", "Ingested events that were changed."), []string{"reason"}),
		processed:  f.NewCounter(counter("events_processed_total", "Events processed by every stage.")),
		duplicates: f.NewCounter(counter("events_duplicate_total", "Events that were processed before.")),
		batchSize:  f.NewHistogram(histogram("batch_events", "Events in a transaction of the worker.", prometheus.ExponentialBuckets(1, 4, 8))),
		batchTime:  f.NewHistogram(histogram("batch_seconds", "Duration of a transaction of the worker.", prometheus.ExponentialBuckets(0.001, 2, 16))),
		retries:    f.NewCounterVec(counter("batch_retries_total", "Retried transactions of the worker."), []string{"cause"}),
	}
}

// countNotices counts the notices of a committed batch.
func (m *Metrics) countNotices(b *reader.Batch) {
	for i := range b.Notices {
		n := &b.Notices[i]
		by := m.changed
		if n.Dropped {
			by = m.dropped
		}
		by.WithLabelValues(n.Kind).Add(1 + float64(n.More))
	}
}
