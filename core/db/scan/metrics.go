package scan

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons of refusals.
const (
	refusedQueue = "queue_full"
	refusedWait  = "wait_over"
)

type metrics struct {
	waiting  prometheus.Gauge
	waited   prometheus.Histogram
	refusals *prometheus.CounterVec
	refused  map[string]prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "guidon_database_scans_waiting", Help: "Searches, counts and exports that wait for a place.",
		}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "guidon_database_scan_wait_seconds", Help: "How long scans waited for a place.",
			Buckets: []float64{.001, .01, .1, .5, 1, 2, 5, 10, 30},
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_database_scans_refused_total", Help: "Scans of requests that were answered with 503, by reason.",
		}, []string{"reason"}),
	}
	m.refused = map[string]prometheus.Counter{
		refusedQueue: m.refusals.WithLabelValues(refusedQueue), refusedWait: m.refusals.WithLabelValues(refusedWait),
	}
	return m
}

// Register registers the metrics of the limiter.
func (l *Limiter) Register(reg prometheus.Registerer) error {
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "guidon_database_scans_running", Help: "Searches, counts and exports that run.",
	}, func() float64 {
		n, _ := l.Running()
		return float64(n)
	})
	places := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "guidon_database_scan_places", Help: "How many scans may run at once.",
	}, func() float64 { return float64(l.cfg.Places) })
	return errors.Join(reg.Register(running), reg.Register(places), reg.Register(l.metrics.waiting),
		reg.Register(l.metrics.waited), reg.Register(l.metrics.refusals))
}
