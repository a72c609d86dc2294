package deadletter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts dead letters. The pipeline, delivery and replay share it.
type Metrics struct {
	added   *prometheus.CounterVec // by source
	replays *prometheus.CounterVec // by source, outcome
}

// NewMetrics registers the metrics with reg, which may be nil.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		added: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "guidon", Subsystem: "ingestion", Name: "dead_letters_total", Help: "Events kept as dead letters.",
		}, []string{"source"}),
		replays: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: "guidon", Subsystem: "ingestion", Name: "dead_letter_replays_total", Help: "Replays of dead letters.",
		}, []string{"source", "outcome"}),
	}
}

// CountAdded counts n dead letters of a source.
func (m *Metrics) CountAdded(source string, n int) { m.added.WithLabelValues(source).Add(float64(n)) }

// CountReplay counts the outcome of a replay.
func (m *Metrics) CountReplay(source, outcome string) {
	m.replays.WithLabelValues(source, outcome).Inc()
}
