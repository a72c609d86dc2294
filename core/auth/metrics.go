package auth

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	unknownKeys prometheus.Counter
	failures    prometheus.Counter
	keys        prometheus.Gauge
}

// newMetrics registers nothing if reg is nil.
func newMetrics(reg prometheus.Registerer) (metrics, error) {
	m := metrics{
		unknownKeys: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "guidon_auth_unknown_project_keys_total",
			Help: "Requests with an unknown project key.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "guidon_auth_refresh_failures_total",
			Help: "Failed refreshes of projects and keys from the database.",
		}),
		keys: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "guidon_auth_project_keys",
			Help: "Project keys in memory.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(reg.Register(m.unknownKeys), reg.Register(m.failures), reg.Register(m.keys))
}
