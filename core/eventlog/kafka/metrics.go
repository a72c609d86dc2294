package kafka

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// metrics are the numbers of a log for Prometheus. A nil *metrics counts nothing.
type metrics struct {
	reg prometheus.Registerer

	latency prometheus.Histogram
	written prometheus.Counter
	refusal *prometheus.CounterVec
	broken  prometheus.Gauge

	records, last       *prometheus.GaugeVec
	lag, lagAge         *prometheus.GaugeVec
	removed, missing    *prometheus.CounterVec
	fetchErrors, direct *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	if reg == nil {
		return nil, nil
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "guidon", Subsystem: "log", Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "log", Name: name, Help: help}, labels)
	}
	m := &metrics{
		reg: reg,
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "guidon", Subsystem: "log", Name: "append_seconds",
			Help: "Time until all replicas in sync have a request.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18),
		}),
		written: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "log", Name: "written_bytes_total", Help: "Data appended."}),
		refusal: counter("refused_total", "Appends that were not taken, by reason.", "code"),
		broken:  prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "guidon", Subsystem: "log", Name: "broken", Help: "1 while appends fail, else 0."}),

		records:     gauge("records", "Records kept in a partition that this node reads.", "partition"),
		last:        gauge("last_record", "Number of the newest record of a partition that this node reads.", "partition"),
		lag:         gauge("reader_lag_records", "Records a reader has not done yet.", "partition", "reader"),
		lagAge:      gauge("reader_lag_seconds", "Age of the oldest record a reader has not done yet.", "partition", "reader"),
		removed:     counter("trimmed_records_total", "Records deleted after all readers had done them.", "partition"),
		missing:     counter("lost_records_total", "Records that the retention of the topic deleted before they were read.", "partition"),
		fetchErrors: counter("fetch_errors_total", "Failed reads from the brokers.", "partition"),
		direct:      counter("direct_fetches_total", "Reads of records that are not in memory.", "partition"),
	}
	for i, c := range m.all() {
		if err := reg.Register(c); err != nil {
			for _, registered := range m.all()[:i] {
				reg.Unregister(registered)
			}
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.latency, m.written, m.refusal, m.broken, m.records, m.last, m.lag, m.lagAge, m.removed, m.missing, m.fetchErrors, m.direct}
}

func (m *metrics) unregister() {
	if m == nil {
		return
	}
	for _, c := range m.all() {
		m.reg.Unregister(c)
	}
}

func (m *metrics) appended(begun time.Time, bytes int) {
	if m != nil {
		m.latency.Observe(time.Since(begun).Seconds())
		m.written.Add(float64(bytes))
	}
}

// refused counts err and returns it.
func (m *metrics) refused(err error) error {
	if m == nil {
		return err
	}
	code := "canceled"
	if f := fault.From(err); f != nil {
		code = f.Code
	}
	m.refusal.WithLabelValues(code).Inc()
	return err
}

func (m *metrics) setBroken(on bool) {
	if m == nil {
		return
	}
	m.broken.Set(0)
	if on {
		m.broken.Set(1)
	}
}

func label(partition int32) string { return strconv.Itoa(int(partition)) }

func (m *metrics) lost(partition int32, records uint64) {
	if m != nil {
		m.missing.WithLabelValues(label(partition)).Add(float64(records))
	}
}

func (m *metrics) trimmed(partition int32, records int64) {
	if m != nil {
		m.removed.WithLabelValues(label(partition)).Add(float64(records))
	}
}

func (m *metrics) fetchFailed(partition int32) {
	if m != nil {
		m.fetchErrors.WithLabelValues(label(partition)).Inc()
	}
}

func (m *metrics) fetchedDirect(partition int32) {
	if m != nil {
		m.direct.WithLabelValues(label(partition)).Inc()
	}
}

// publish sets the figures of a partition, and forgets readers that are no more.
func (m *metrics) publish(partition int32, s journal.Stats) {
	if m == nil {
		return
	}
	m.forget(partition)
	n := label(partition)
	m.records.WithLabelValues(n).Set(float64(s.Records))
	m.last.WithLabelValues(n).Set(float64(s.Last))
	for _, r := range s.Readers {
		age := 0.0
		if !r.OldestAt.IsZero() {
			age = max(0, time.Since(r.OldestAt).Seconds())
		}
		m.lag.WithLabelValues(n, r.Name).Set(float64(r.Lag))
		m.lagAge.WithLabelValues(n, r.Name).Set(age)
	}
}

// forget removes the figures of a partition that this node does not read.
func (m *metrics) forget(partition int32) {
	if m == nil {
		return
	}
	for _, v := range []*prometheus.GaugeVec{m.records, m.last, m.lag, m.lagAge} {
		v.DeletePartialMatch(prometheus.Labels{"partition": label(partition)})
	}
}
