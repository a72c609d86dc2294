package ingestion

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the room's numbers, shared by its parts. How far each reader of
// the journal is behind is told by the journal itself.
type Metrics struct {
	accepted   prometheus.Counter
	refused    *prometheus.CounterVec // by code
	overQuota  prometheus.Counter
	dropped    *prometheus.CounterVec // by reason
	changed    *prometheus.CounterVec // by reason
	processed  prometheus.Counter
	duplicates prometheus.Counter
	batchSize  prometheus.Histogram
	batchTime  prometheus.Histogram
	retries    *prometheus.CounterVec // by cause
	dead       *prometheus.CounterVec // by source
	replays    *prometheus.CounterVec // by source, outcome

	delivered    *prometheus.CounterVec   // by sink
	deliverCalls *prometheus.CounterVec   // by sink, outcome
	deliverTime  *prometheus.HistogramVec // by sink
	deliverSize  *prometheus.HistogramVec // by sink

	deliverSkipped *prometheus.CounterVec // by sink, reason
	deliverFutile  *prometheus.CounterVec // by sink
}

// NewMetrics makes the metrics and registers them; with a nil reg they count for
// nobody.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help}
	}
	histogram := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help, Buckets: buckets}
	}
	sizes := prometheus.ExponentialBuckets(1, 4, 8)
	times := prometheus.ExponentialBuckets(0.001, 2, 16)
	return &Metrics{
		accepted:   f.NewCounter(counter("events_accepted_total", "Events on disk and answered for.")),
		refused:    f.NewCounterVec(counter("requests_refused_total", "Capture requests that were not accepted."), []string{"code"}),
		overQuota:  f.NewCounter(counter("events_over_quota_total", "Events that were not taken because their project had sent as many as it may.")),
		dropped:    f.NewCounterVec(counter("events_dropped_total", "Accepted events that could not be ingested."), []string{"reason"}),
		changed:    f.NewCounterVec(counter("events_changed_total", "Ingested events of which something had to be changed."), []string{"reason"}),
		processed:  f.NewCounter(counter("events_processed_total", "Events that went through every stage.")),
		duplicates: f.NewCounter(counter("events_duplicate_total", "Events that had been processed before.")),
		batchSize:  f.NewHistogram(histogram("batch_events", "Events in one transaction of the worker.", sizes)),
		batchTime:  f.NewHistogram(histogram("batch_seconds", "Time of one transaction of the worker.", times)),
		retries:    f.NewCounterVec(counter("batch_retries_total", "Transactions of the worker that were begun again."), []string{"cause"}),
		dead:       f.NewCounterVec(counter("dead_letters_total", "Events set aside."), []string{"source"}),
		replays:    f.NewCounterVec(counter("dead_letter_replays_total", "Dead letters sent again."), []string{"source", "outcome"}),

		delivered:    f.NewCounterVec(counter("deliver_events_total", "Events a sink has confirmed."), []string{"sink"}),
		deliverCalls: f.NewCounterVec(counter("deliver_calls_total", "Answers of a sink to a batch."), []string{"sink", "outcome"}),
		deliverTime:  f.NewHistogramVec(histogram("deliver_seconds", "Time a sink took for a batch.", times), []string{"sink"}),
		deliverSize:  f.NewHistogramVec(histogram("deliver_batch_events", "Events in a batch for a sink.", sizes), []string{"sink"}),

		deliverSkipped: f.NewCounterVec(counter("deliver_skipped_events_total", "Events that were not for a sink, as its filters say."), []string{"sink", "reason"}),
		deliverFutile:  f.NewCounterVec(counter("deliver_futile_flushes_total", "Flushes of a sink that made nothing safe."), []string{"sink"}),
	}
}
