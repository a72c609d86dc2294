package host

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the same for every plugin, which needs to do nothing for them.
type metrics struct {
	state    *prometheus.GaugeVec
	restarts *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	breaches *prometheus.CounterVec
	dropped  *prometheus.CounterVec
}

// newMetrics registers the metrics; with a nil registerer they count in vain.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_state", Help: "1 for the state a plugin instance is in, 0 for the others.",
		}, []string{"instance", "state"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_restarts_total", Help: "Processes started after the first one of an instance, by what ended the one before.",
		}, []string{"instance", "reason"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "guidon_plugin_call_seconds", Help: "Duration of calls to plugins, by method and outcome.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}, []string{"instance", "method", "outcome"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_calls_in_flight", Help: "Calls of plugins that are under way.",
		}, []string{"instance"}),
		breaches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_contract_breaches_total", Help: "Answers of plugins that break the contract, by what is wrong with them.",
		}, []string{"instance", "breach"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_log_lines_dropped_total", Help: "Log lines of plugins that were over the limit.",
		}, []string{"instance"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.state, m.restarts, m.calls, m.inFlight, m.breaches, m.dropped} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// enter sets the state gauge of an instance.
func (m *metrics) enter(instance string, state State) {
	for _, s := range states {
		value := 0.0
		if s == state {
			value = 1
		}
		m.state.WithLabelValues(instance, string(s)).Set(value)
	}
}

// forget removes an instance that is no longer configured.
func (m *metrics) forget(instance string) {
	labels := prometheus.Labels{"instance": instance}
	m.state.DeletePartialMatch(labels)
	m.restarts.DeletePartialMatch(labels)
	m.calls.DeletePartialMatch(labels)
	m.inFlight.DeletePartialMatch(labels)
	m.breaches.DeletePartialMatch(labels)
	m.dropped.DeletePartialMatch(labels)
}
