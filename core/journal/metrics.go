package journal

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/fault"
)

// scrapeTimeout bounds what a scrape waits for the readers' lag.
const scrapeTimeout = 2 * time.Second

// metrics are the journal's numbers for Prometheus. A nil *metrics counts
// nothing.
type metrics struct {
	j   *store
	reg prometheus.Registerer

	latency  prometheus.Histogram
	records  prometheus.Histogram
	written  prometheus.Counter
	refusals *prometheus.CounterVec
	damaged  prometheus.Counter
	replaced prometheus.Counter
}

// Metrics read from Stats at a scrape.
var (
	recordsDesc = desc("records", "Records kept.")
	bytesDesc   = desc("bytes", "Data of the records kept.")
	fileDesc    = desc("file_bytes", "What the journal's files take on disk.")
	brokenDesc  = desc("broken", "1 while appends are refused, else 0.")
	lagDesc     = desc("reader_lag_records", "Records a reader has not done yet.", "reader")
	behindDesc  = desc("reader_lag_bytes", "Data of the records a reader has not done yet.", "reader")
	ageDesc     = desc("reader_lag_seconds", "Age of the oldest record a reader has not done yet.", "reader")
	droppedDesc = desc("reader_dropped_records_total", "Records trimmed before a reader had done them.", "reader")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guidon_journal_"+name, help, labels, nil)
}

func newMetrics(j *store, reg prometheus.Registerer) (*metrics, error) {
	if reg == nil {
		return nil, nil
	}
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "guidon", Subsystem: "journal", Name: name, Help: help}
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "guidon", Subsystem: "journal", Name: name, Help: help, Buckets: buckets})
	}
	m := &metrics{
		j: j, reg: reg,
		latency: histogram("append_seconds", "Time from an append to its fsync.", prometheus.ExponentialBuckets(0.0001, 2, 16)),
		records: histogram("group_records", "Appends carried by one fsync.", prometheus.ExponentialBuckets(1, 2, 13)),
		written: prometheus.NewCounter(prometheus.CounterOpts(opts("written_bytes_total", "Data appended."))),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts(opts("refused_total",
			"Appends that were not taken, by reason.")), []string{"code"}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts(opts("damaged_records_total",
			"Records found damaged or missing in the journal's file."))),
		replaced: prometheus.NewCounter(prometheus.CounterOpts(opts("files_replaced_total",
			"Malformed files of the journal that were replaced by a copy of their readable records."))),
	}
	return m, reg.Register(m)
}

func (m *metrics) unregister() {
	if m != nil {
		m.reg.Unregister(m)
	}
}

func (m *metrics) startTimer() time.Time {
	if m == nil {
		return time.Time{}
	}
	return time.Now()
}

func (m *metrics) appended(begun time.Time) {
	if m != nil {
		m.latency.Observe(time.Since(begun).Seconds())
	}
}

func (m *metrics) group(appends, bytes int) {
	if m != nil {
		m.records.Observe(float64(appends))
		m.written.Add(float64(bytes))
	}
}

func (m *metrics) countDamaged(records uint64) {
	if m != nil {
		m.damaged.Add(float64(records))
	}
}

func (m *metrics) countReplaced() {
	if m != nil {
		m.replaced.Inc()
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
	m.refusals.WithLabelValues(code).Inc()
	return err
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{recordsDesc, bytesDesc, fileDesc, brokenDesc, lagDesc, behindDesc, ageDesc, droppedDesc} {
		ch <- d
	}
	for _, c := range m.counted() {
		c.Describe(ch)
	}
}

// counted returns the metrics that are not read from Stats.
func (m *metrics) counted() []prometheus.Collector {
	return []prometheus.Collector{m.latency, m.records, m.written, m.refusals, m.damaged, m.replaced}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counted() {
		c.Collect(ch)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s, err := m.j.Stats(ctx)
	if err != nil && s.ID == "" {
		return // closing
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	broken := 0.0
	if s.Broken != nil {
		broken = 1
	}
	gauge(brokenDesc, broken)
	gauge(recordsDesc, float64(s.Records))
	gauge(bytesDesc, float64(s.Bytes))
	gauge(fileDesc, float64(s.FileBytes))
	for _, r := range s.Readers {
		age := 0.0
		if !r.OldestAt.IsZero() {
			age = max(0, time.Since(r.OldestAt).Seconds())
		}
		gauge(lagDesc, float64(r.Lag), r.Name)
		gauge(behindDesc, float64(r.Bytes), r.Name)
		gauge(ageDesc, age, r.Name)
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(r.Dropped), r.Name)
	}
}
