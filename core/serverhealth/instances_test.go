package serverhealth_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/serverhealth"
)

// plugins is a Recorder with the metrics of plugins.
type plugins struct {
	*serverhealth.Recorder

	now                                    time.Time
	state, lag, age                        *prometheus.GaugeVec
	delivered, messages, letters, restarts *prometheus.CounterVec
	calls                                  *prometheus.HistogramVec
}

func newPlugins() *plugins {
	counter := func(name string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name}, labels)
	}
	gauge := func(name string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name}, labels)
	}
	p := &plugins{
		now:   time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		state: gauge("guidon_plugin_state", "instance", "state"), lag: gauge("guidon_log_reader_lag_records", "partition", "reader"), age: gauge("guidon_log_reader_lag_seconds", "partition", "reader"),
		delivered: counter("guidon_ingestion_deliver_events_total", "sink"), messages: counter("guidon_notifications_results_total", "notifier", "outcome"),
		letters: counter("guidon_ingestion_dead_letters_total", "source"), restarts: counter("guidon_plugin_restarts_total", "instance", "reason"),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "guidon_plugin_call_seconds", Buckets: []float64{0.01, 0.1, 1}}, []string{"instance", "method", "outcome"}),
	}
	reg := serverhealth.Watch(prometheus.NewRegistry())
	reg.MustRegister(p.state, p.lag, p.age, p.delivered, p.messages, p.letters, p.restarts, p.calls)
	p.Recorder = serverhealth.New(serverhealth.Watched(reg), func() time.Time { return p.now })
	return p
}

func (p *plugins) step() {
	p.now = p.now.Add(serverhealth.Step)
	p.Sample()
}

// last returns the newest value of a series of an instance.
func (p *plugins) last(instance, name string) float64 {
	values := p.ReadInstances(instance, []string{name}, p.now, p.now, serverhealth.Step).Values[instance]
	if len(values) != 1 {
		return math.Inf(1) // no instance of that name
	}
	return values[0][len(values[0])-1]
}

func (p *plugins) want(t *testing.T, instance string, all map[string]float64) {
	t.Helper()
	for name, want := range all {
		got := p.last(instance, name)
		if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-4*math.Abs(want) {
			t.Errorf("%s: %s is %v; want %v", instance, name, got, want)
		}
	}
}

func TestInstances(t *testing.T) {
	p := newPlugins()
	for _, name := range []string{"copy", "chat", "geo"} {
		p.state.WithLabelValues(name, "ready").Set(1)
	}
	p.delivered.WithLabelValues("copy").Add(500)
	p.Sample()
	p.delivered.WithLabelValues("copy").Add(30)
	p.lag.WithLabelValues("0", "sink/copy").Set(3)
	p.lag.WithLabelValues("1", "sink/copy").Set(4)
	p.lag.WithLabelValues("1", "historical/sink/copy").Set(100)
	p.lag.WithLabelValues("1", "sink/other").Set(100)
	p.age.WithLabelValues("0", "sink/copy").Set(20)
	p.age.WithLabelValues("1", "sink/copy").Set(7)
	p.letters.WithLabelValues("sink/copy").Add(2)
	p.letters.WithLabelValues("worker").Add(9)
	for outcome, n := range map[string]int{"committed": 3, "rejected": 2, "DeadlineExceeded": 1} {
		for range n {
			p.calls.WithLabelValues("copy", "write_batch", outcome).Observe(0.05)
		}
	}
	p.calls.WithLabelValues("copy", "health", "refused").Observe(100)
	p.messages.WithLabelValues("chat", "delivered").Add(15)
	p.messages.WithLabelValues("chat", "retry").Add(4)
	p.calls.WithLabelValues("geo", "match_batch", "ok").Observe(0.005)
	p.restarts.WithLabelValues("geo", "crashed").Inc()
	p.step()
	p.want(t, "copy", map[string]float64{"delivered": 2, "lag_requests": 7, "lag_seconds": 20, "dead_letters": 2, "calls": 0.4, "call_errors": 3, "restarts": 0, "call_p50": 0.055})
	p.want(t, "chat", map[string]float64{"delivered": 1, "failed_messages": 4, "lag_requests": none, "lag_seconds": none, "call_p99": none})
	p.want(t, "geo", map[string]float64{"calls": 1. / 15, "call_errors": 0, "restarts": 1, "call_p50": 0.005})
	p.step()
	p.want(t, "copy", map[string]float64{"delivered": 0, "call_errors": 0, "lag_seconds": 20, "call_p50": none})
}

// Longer steps have the sum of counts and the mean of rates.
func TestInstanceCountsAreAdded(t *testing.T) {
	p := newPlugins()
	p.state.WithLabelValues("copy", "ready").Set(1)
	p.Sample()
	begin := p.now
	for i := 1; i <= 8; i++ {
		p.letters.WithLabelValues("sink/copy").Add(float64(i))
		p.delivered.WithLabelValues("copy").Add(float64(15 * i))
		p.step()
	}
	r := p.ReadInstances("", []string{"dead_letters", "delivered"}, begin, p.now, time.Minute)
	if got := fmt.Sprint(r.From.Equal(begin), r.Step, r.Values, r.LeftOut); got != "true 1m0s map[copy:[[6 22 8] [2 5.5 8]]] 0" {
		t.Errorf("each minute: %s", got)
	}
}

// An instance that is removed frees its rings, and there are never more than MaxInstances.
func TestInstancesAreBounded(t *testing.T) {
	p := newPlugins()
	before := p.Bytes()
	for i := range serverhealth.MaxInstances + 3 {
		p.state.WithLabelValues(fmt.Sprintf("sink-%02d", i), "ready").Set(1)
	}
	for range 3 {
		p.step()
	}
	r := p.ReadInstances("", nil, p.now, p.now, serverhealth.Step)
	if got := p.Bytes() - before; got != serverhealth.MaxInstances*serverhealth.InstanceBytes || got > 3<<20 || len(r.Values) != serverhealth.MaxInstances || r.LeftOut != 3 {
		t.Errorf("%d bytes of %d instances, %d are left out", got, len(r.Values), r.LeftOut)
	}
	p.state.DeletePartialMatch(prometheus.Labels{"instance": "sink-00"})
	p.step()
	r = p.ReadInstances("", nil, p.now, p.now, serverhealth.Step)
	if _, kept := r.Values["sink-00"]; kept || len(r.Values) != serverhealth.MaxInstances || r.LeftOut != 2 {
		t.Errorf("%d instances, %d are left out, the removed one: %t", len(r.Values), r.LeftOut, kept)
	}
}

// BenchmarkSampleInstances is the cost of a sample with 32 instances.
func BenchmarkSampleInstances(b *testing.B) {
	p := newPlugins()
	for i := range serverhealth.MaxInstances {
		name := fmt.Sprintf("sink-%02d", i)
		for s := range 14 {
			p.state.WithLabelValues(name, fmt.Sprint(s)).Set(0)
		}
		for _, outcome := range []string{"committed", "rejected"} {
			p.calls.WithLabelValues(name, "write_batch", outcome).Observe(0.1)
			p.calls.WithLabelValues(name, "health", outcome).Observe(0.1)
		}
		p.delivered.WithLabelValues(name).Inc()
		p.lag.WithLabelValues("0", "sink/"+name).Set(1)
		p.age.WithLabelValues("0", "sink/"+name).Set(1)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Sample()
	}
	b.ReportMetric(float64(p.Bytes()), "ring-bytes")
}
