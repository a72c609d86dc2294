package operators

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// meter counts pairs and calls. A nil meter counts nothing.
type meter struct {
	hits     prometheus.Counter
	pairs    *prometheus.CounterVec
	calls    *prometheus.CounterVec
	unknowns *prometheus.CounterVec
	opened   *prometheus.GaugeVec
}

func newMeter(reg prometheus.Registerer) *meter {
	if reg == nil {
		return nil
	}
	f := promauto.With(reg)
	return &meter{
		hits: f.NewCounter(prometheus.CounterOpts{
			Name: "guidon_operators_cache_hits_total", Help: "Questions to plugin operators that were answered from memory.",
		}),
		pairs: f.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_operators_pairs_total", Help: "Questions that were put to a plugin, in calls.",
		}, []string{"plugin", "for"}),
		calls: f.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_operators_calls_total", Help: "Times a plugin was to be asked, those included in which it was spared.",
		}, []string{"plugin", "for"}),
		unknowns: f.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_operators_unknown_total",
			Help: "Questions without an answer, by reason: timeout, open (the plugin is spared), busy, unavailable, error, cancelled, failed (it cannot judge the value), unknown, unknown_operator.",
		}, []string{"plugin", "reason"}),
		opened: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_operators_breaker_open", Help: "1 while a plugin is spared because it does not answer.",
		}, []string{"plugin", "for"}),
	}
}

func (m *meter) addHit() {
	if m != nil {
		m.hits.Inc()
	}
}

func (m *meter) addCall(plugin string, in purpose, pairs int) {
	if m != nil {
		m.calls.WithLabelValues(plugin, in.String()).Inc()
		m.pairs.WithLabelValues(plugin, in.String()).Add(float64(pairs))
	}
}

func (m *meter) addUnknown(plugin, reason string, pairs int) {
	if m != nil {
		m.unknowns.WithLabelValues(plugin, reason).Add(float64(pairs))
	}
}

func (m *meter) setBreaker(plugin string, in purpose, open bool) {
	if m == nil {
		return
	}
	n := 0.0
	if open {
		n = 1
	}
	m.opened.WithLabelValues(plugin, in.String()).Set(n)
}
