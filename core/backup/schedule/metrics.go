package schedule

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of the backups of a server.
type metrics struct {
	attempts *prometheus.CounterVec
	duration prometheus.Gauge
	gauges   []prometheus.Collector
}

func newMetrics(s *Scheduler) *metrics {
	gauge := func(name, help string, value func(last Backup) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return value(s.last)
		})
	}
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "guidon_backups_total", Help: "Backups by the server, by result."}, []string{"result"}),
		duration: prometheus.NewGauge(prometheus.GaugeOpts{Name: "guidon_backup_last_duration_seconds", Help: "Duration of the last good backup of this process."}),
	}
	m.gauges = []prometheus.Collector{
		gauge("guidon_backup_last_success_timestamp_seconds", "Unix time of the last good backup; 0 without one.", func(last Backup) float64 {
			if last.At.IsZero() {
				return 0
			}
			return float64(last.At.Unix())
		}),
		gauge("guidon_backup_last_size_bytes", "Size of the last good backup.", func(last Backup) float64 { return float64(last.Bytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "guidon_backup_running", Help: "1 while a backup is written."}, func() float64 {
			if s.State().Running {
				return 1
			}
			return 0
		}),
		gauge("guidon_backup_interval_seconds", "Longest configured time between two backups.", func(Backup) float64 { return s.o.Times.Longest().Seconds() }),
	}
	for _, result := range []string{"ok", "failed"} {
		m.attempts.WithLabelValues(result)
	}
	return m
}

func (m *metrics) made(took time.Duration) {
	m.attempts.WithLabelValues("ok").Inc()
	m.duration.Set(took.Seconds())
}

func (m *metrics) failed() { m.attempts.WithLabelValues("failed").Inc() }

// Register registers the metrics, unless the server makes no backups.
func (s *Scheduler) Register(reg prometheus.Registerer) error {
	if !s.o.Times.Enabled() {
		return nil
	}
	var errs []error
	for _, c := range append(s.metrics.gauges, s.metrics.attempts, s.metrics.duration) {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}
