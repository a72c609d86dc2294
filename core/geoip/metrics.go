package geoip

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// registerMetrics registers the metrics with reg, which may be nil.
func (d *Database) registerMetrics(reg prometheus.Registerer) {
	f := promauto.With(reg)
	d.loads = f.NewCounterVec(prometheus.CounterOpts{
		Namespace: "guidon", Subsystem: "geoip", Name: "loads_total", Help: "Attempts to load the geoip database.",
	}, []string{"result"})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "guidon", Subsystem: "geoip", Name: "database_built_seconds", Help: "Time at which the geoip database in use was built, in seconds since 1970; 0 without one.",
	}, func() float64 {
		if f := d.current.Load(); f != nil {
			return float64(f.reader.Metadata.BuildEpoch)
		}
		return 0
	})
}
