package logstate

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// Metrics are the numbers of a log for Prometheus. A nil *Metrics counts nothing.
type Metrics struct {
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

// NewMetrics registers the metrics. It returns nil without a reg.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	if reg == nil {
		return nil, nil
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "guidon", Subsystem: "log", Name: name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "log", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		reg: reg,
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "guidon", Subsystem: "log", Name: "append_seconds",
			Help: "Time until a request is durable: Kafka: all replicas in sync have it.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18),
		}),
		written: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "log", Name: "written_bytes_total", Help: "Data appended."}),
		refusal: counter("refused_total", "Appends that were not taken, by reason.", "code"),
		broken:  prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "guidon", Subsystem: "log", Name: "broken", Help: "1 while appends fail, else 0."}),

		records:     gauge("records", "Records kept in a partition that this node reads.", "partition"),
		last:        gauge("last_record", "Number of the newest record of a partition that this node reads.", "partition"),
		lag:         gauge("reader_lag_records", "Records a reader has not done yet.", "partition", "reader"),
		lagAge:      gauge("reader_lag_seconds", "Age of the oldest record a reader has not done yet.", "partition", "reader"),
		removed:     counter("trimmed_records_total", "Records deleted after all readers had done them.", "partition"),
		missing:     counter("lost_records_total", "Records that were deleted before they were read.", "partition"),
		fetchErrors: counter("fetch_errors_total", "Failed reads from the log.", "partition"),
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

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.latency, m.written, m.refusal, m.broken, m.records, m.last, m.lag, m.lagAge, m.removed, m.missing, m.fetchErrors, m.direct}
}

// Unregister removes the metrics from the registerer.
func (m *Metrics) Unregister() {
	if m == nil {
		return
	}
	for _, c := range m.all() {
		m.reg.Unregister(c)
	}
}

// Appended counts an append that was stored.
func (m *Metrics) Appended(begun time.Time, bytes int) {
	if m != nil {
		m.latency.Observe(time.Since(begun).Seconds())
		m.written.Add(float64(bytes))
	}
}

// Refused counts err and returns it.
func (m *Metrics) Refused(err error) error {
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

// SetBroken records whether appends fail.
func (m *Metrics) SetBroken(on bool) {
	if m == nil {
		return
	}
	m.broken.Set(0)
	if on {
		m.broken.Set(1)
	}
}

func label(partition int) string { return strconv.Itoa(partition) }

// Lost counts records that were deleted before they were read.
func (m *Metrics) Lost(partition int, records uint64) {
	if m != nil {
		m.missing.WithLabelValues(label(partition)).Add(float64(records))
	}
}

// Trimmed counts deleted records.
func (m *Metrics) Trimmed(partition int, records int64) {
	if m != nil {
		m.removed.WithLabelValues(label(partition)).Add(float64(records))
	}
}

// FetchFailed counts a read that failed.
func (m *Metrics) FetchFailed(partition int) {
	if m != nil {
		m.fetchErrors.WithLabelValues(label(partition)).Inc()
	}
}

// FetchedDirect counts a read of records that are not in memory.
func (m *Metrics) FetchedDirect(partition int) {
	if m != nil {
		m.direct.WithLabelValues(label(partition)).Inc()
	}
}

// Publish sets the figures of a partition, and forgets readers that are no more.
func (m *Metrics) Publish(partition int, s journal.Stats) {
	if m == nil {
		return
	}
	m.Forget(partition)
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

// Forget removes the figures of a partition that this node does not read.
func (m *Metrics) Forget(partition int) {
	if m == nil {
		return
	}
	for _, v := range []*prometheus.GaugeVec{m.records, m.last, m.lag, m.lagAge} {
		v.DeletePartialMatch(prometheus.Labels{"partition": label(partition)})
	}
}
