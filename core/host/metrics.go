package host

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// metrics are the same for every plugin, which needs to do nothing for them.
type metrics struct {
	state    *prometheus.GaugeVec
	restarts *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	breaches *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	untested *prometheus.GaugeVec
	rss      *prometheus.GaugeVec
	cpu      *prometheus.GaugeVec
	plugins  *collected
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
		untested: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_untrusted", Help: "1 for an instance that runs an executable nobody vouches for, in development mode.",
		}, []string{"instance"}),
		rss: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_resident_memory_bytes", Help: "Memory of the process an instance lives in; instances may share one.",
		}, []string{"instance", "pid"}),
		cpu: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_cpu_seconds", Help: "CPU time the process an instance lives in has used; instances may share one.",
		}, []string{"instance", "pid"}),
	}
	m.plugins = &collected{byInstance: map[string][]*dto.MetricFamily{}}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.state, m.restarts, m.calls, m.inFlight, m.breaches, m.dropped, m.untested, m.rss, m.cpu, m.plugins} {
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
	m.untested.DeletePartialMatch(labels)
	m.rss.DeletePartialMatch(labels)
	m.cpu.DeletePartialMatch(labels)
	m.plugins.keep(instance, nil)
}

// used notes what the process of an instance uses.
func (m *metrics) used(instance string, pid int, rss int64, cpu time.Duration) {
	m.rss.WithLabelValues(instance, strconv.Itoa(pid)).Set(float64(rss))
	m.cpu.WithLabelValues(instance, strconv.Itoa(pid)).Set(cpu.Seconds())
}
