package changes

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts streams. Nil disables it.
type metrics struct {
	refused *prometheus.CounterVec
	sent    prometheus.Counter
	took    prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, open func() int) *metrics {
	if reg == nil {
		return nil
	}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "guidon_change_streams", Help: "Open streams of changes."}, func() float64 { return float64(open()) })
	return &metrics{
		refused: f.NewCounterVec(prometheus.CounterOpts{Name: "guidon_change_streams_refused_total", Help: "Streams of changes that were refused, by bound."}, []string{"reason"}),
		sent:    f.NewCounter(prometheus.CounterOpts{Name: "guidon_change_notifications_total", Help: "Notifications of changes to streams."}),
		took: f.NewHistogram(prometheus.HistogramOpts{
			Name: "guidon_change_notification_duration_seconds", Help: "Duration of sending a change to all streams of a project.",
			Buckets: []float64{1e-3, 10e-3, 100e-3, 400e-3, 1, 5},
		}),
	}
}

func (m *metrics) refuse(reason string) {
	if m != nil {
		m.refused.WithLabelValues(reason).Inc()
	}
}

func (m *metrics) notified(streams int, took time.Duration) {
	if m != nil {
		m.sent.Add(float64(streams))
		m.took.Observe(took.Seconds())
	}
}
