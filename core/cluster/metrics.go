package cluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a node.
type metrics struct {
	takeovers, drains prometheus.Counter
	gauges            []prometheus.Collector
	leases            *prometheus.Desc
	node              *Node
}

func newMetrics(n *Node) *metrics {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			n.mu.Lock()
			defer n.mu.Unlock()
			return value()
		})
	}
	return &metrics{
		node:      n,
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{Name: "guidon_cluster_takeovers_total", Help: "Leases that this node took from dead nodes."}),
		drains:    prometheus.NewCounter(prometheus.CounterOpts{Name: "guidon_cluster_drains_total", Help: "Drains of this node."}),
		leases:    prometheus.NewDesc("guidon_cluster_leases", "Leases that this node holds, by kind.", []string{"kind"}, nil),
		gauges: []prometheus.Collector{
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "guidon_cluster_clock_ahead_seconds", Help: "How far the clock of this node is ahead of that of the database; negative if it is behind.",
			}, func() float64 { return n.Clock().AheadSeconds }),
			gauge("guidon_cluster_nodes", "Living nodes that this node sees, itself included.", func() float64 {
				count := 0
				for id := range n.observed.nodes {
					if n.observed.living(id) {
						count++
					}
				}
				return float64(count)
			}),
			gauge("guidon_cluster_beat_age_seconds", "Time since this node began its newest stored beat; -1 without one.", func() float64 {
				if !n.beats.written {
					return -1
				}
				return (n.clock() - n.beats.at).Seconds()
			}),
		},
	}
}

func (m *metrics) register(reg prometheus.Registerer) error {
	var errs []error
	for _, c := range append(m.gauges, m.takeovers, m.drains, m) {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

// Describe implements prometheus.Collector for the leases.
func (m *metrics) Describe(c chan<- *prometheus.Desc) { c <- m.leases }

// Collect implements prometheus.Collector for the leases.
func (m *metrics) Collect(c chan<- prometheus.Metric) {
	jobs, partitions := 0, 0
	m.node.mu.Lock()
	for _, s := range m.node.slots {
		if s.job {
			jobs++
		} else {
			partitions++
		}
	}
	m.node.mu.Unlock()
	c <- prometheus.MustNewConstMetric(m.leases, prometheus.GaugeValue, float64(jobs), "job")
	c <- prometheus.MustNewConstMetric(m.leases, prometheus.GaugeValue, float64(partitions), "partition")
}
