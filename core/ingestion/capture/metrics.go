package capture

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts captured events and rejected requests.
type Metrics struct {
	accepted  prometheus.Counter
	rejected  *prometheus.CounterVec // by code
	overQuota prometheus.Counter
}

// NewMetrics registers the metrics with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "guidon", Subsystem: "ingestion", Name: name, Help: help}
	}
	return &Metrics{
		accepted:  f.NewCounter(counter("events_accepted_total", "Events on disk and acknowledged.")),
		rejected:  f.NewCounterVec(counter("requests_refused_total", "Capture requests that were rejected."), []string{"code"}),
		overQuota: f.NewCounter(counter("events_over_quota_total", "Events that were dropped because their project is over quota.")),
	}
}
