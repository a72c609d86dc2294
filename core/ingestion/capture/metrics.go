package capture

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts captured events and rejected requests.
type Metrics struct {
	accepted  prometheus.Counter
	rejected  *prometheus.CounterVec // by code
	refused   *prometheus.CounterVec // events, by reason
	overQuota prometheus.Counter
}

// NewMetrics registers the metrics with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help}
	}
	return &Metrics{
		accepted: f.NewCounter(counter("events_accepted_total", "Events on disk and acknowledged.")),
		rejected: f.NewCounterVec(counter("requests_refused_total", "Capture requests that were rejected."), []string{"code"}),
		refused: f.NewCounterVec(counter("events_refused_total",
			"Events that capture did not take, by reason; a request that could not be read counts as one event."), []string{"reason"}),
		overQuota: f.NewCounter(counter("events_over_quota_total", "Events that were dropped because their project is over quota.")),
	}
}

// refuse counts a rejected request with its events; 0 if they were not read.
func (m *Metrics) refuse(code string, events int) {
	m.rejected.WithLabelValues(code).Inc()
	m.refuseEvents(code, events)
}

func (m *Metrics) refuseEvents(reason string, events int) {
	m.refused.WithLabelValues(reason).Add(float64(max(1, events)))
}
