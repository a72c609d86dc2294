// Package metrics declares the Prometheus metrics of plugins: those the host counts
// for every plugin, and those that plugins count themselves, which the host pulls
// and exports under the prefix plugin_.
package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/guidonhq/guidon/core/host/lifecycle"
)

// Metrics are the metrics that the host counts for every plugin.
type Metrics struct {
	State              *prometheus.GaugeVec
	Restarts           *prometheus.CounterVec
	Calls              *prometheus.HistogramVec
	InFlight           *prometheus.GaugeVec
	ContractViolations *prometheus.CounterVec
	DroppedLines       *prometheus.CounterVec
	Unverified         *prometheus.GaugeVec
	Memory             *prometheus.GaugeVec
	CPU                *prometheus.CounterVec
	Plugins            *PluginMetrics

	mu   sync.Mutex
	used map[string]usage // by instance
}

// usage is the CPU time of a process when it was measured last.
type usage struct {
	pid int
	cpu time.Duration
}

// New registers the metrics; a nil registerer leaves them unregistered.
func New(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		State: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_state", Help: "1 for the state a plugin instance is in, 0 for the others.",
		}, []string{"instance", "state"}),
		Restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_restarts_total", Help: "Processes started after the first one of an instance, by what ended the one before.",
		}, []string{"instance", "reason"}),
		Calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "guidon_plugin_call_seconds", Help: "Duration of calls to plugins, by method and outcome.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}, []string{"instance", "method", "outcome"}),
		InFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_calls_in_flight", Help: "Calls of plugins that are under way.",
		}, []string{"instance"}),
		ContractViolations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_contract_breaches_total", Help: "Answers of plugins that break the contract, by what is wrong with them.",
		}, []string{"instance", "breach"}),
		DroppedLines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_log_lines_dropped_total", Help: "Log lines of plugins that were over the limit.",
		}, []string{"instance"}),
		Unverified: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_untrusted", Help: "1 for an instance that runs an executable without a checksum, in development mode.",
		}, []string{"instance"}),
		Memory: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "guidon_plugin_resident_memory_bytes", Help: "Memory of the process an instance lives in; instances may share one.",
		}, []string{"instance", "pid"}),
		CPU: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_plugin_cpu_seconds_total", Help: "CPU time that the processes of an instance have used; instances may share one.",
		}, []string{"instance"}),
		used: map[string]usage{},
	}
	m.Plugins = &PluginMetrics{byInstance: map[string][]*dto.MetricFamily{}}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.State, m.Restarts, m.Calls, m.InFlight, m.ContractViolations, m.DroppedLines, m.Unverified, m.Memory, m.CPU, m.Plugins} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// SetState sets the state gauge of an instance.
func (m *Metrics) SetState(instance string, state lifecycle.State) {
	for _, s := range lifecycle.States {
		value := 0.0
		if s == state {
			value = 1
		}
		m.State.WithLabelValues(instance, string(s)).Set(value)
	}
}

// Forget removes an instance that is no longer configured.
func (m *Metrics) Forget(instance string) {
	labels := prometheus.Labels{"instance": instance}
	m.State.DeletePartialMatch(labels)
	m.Restarts.DeletePartialMatch(labels)
	m.Calls.DeletePartialMatch(labels)
	m.InFlight.DeletePartialMatch(labels)
	m.ContractViolations.DeletePartialMatch(labels)
	m.DroppedLines.DeletePartialMatch(labels)
	m.Unverified.DeletePartialMatch(labels)
	m.Memory.DeletePartialMatch(labels)
	m.CPU.DeletePartialMatch(labels)
	m.mu.Lock()
	delete(m.used, instance)
	m.mu.Unlock()
	m.Plugins.Keep(instance, nil)
}

// SetUsage sets the memory of an instance's process and adds the CPU time since the
// last call. The time that a process used before its end, after the last call, is not
// counted.
func (m *Metrics) SetUsage(instance string, pid int, rss int64, cpu time.Duration) {
	m.Memory.WithLabelValues(instance, strconv.Itoa(pid)).Set(float64(rss))
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.used[instance]
	if before.pid != pid || cpu < before.cpu {
		before.cpu = 0 // another process
	}
	m.used[instance] = usage{pid, cpu}
	m.CPU.WithLabelValues(instance).Add((cpu - before.cpu).Seconds())
}

// Outcome returns the outcome label of a call that the plugin answered.
func Outcome(ok bool) string {
	if ok {
		return "ok"
	}
	return "refused"
}
