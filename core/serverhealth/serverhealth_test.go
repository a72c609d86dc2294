package serverhealth_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/guidonhq/guidon/core/serverhealth"
)

// server is a Recorder with its metrics and its clock.
type server struct {
	*serverhealth.Recorder

	now      time.Time
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	accepted prometheus.Counter
	lag      *prometheus.GaugeVec
	free     prometheus.Gauge
	size     prometheus.Gauge
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	reg := serverhealth.Watch(prometheus.NewRegistry())
	s := &server{
		now:      time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "guidon_http_requests_total"}, []string{"route", "method", "status"}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "guidon_ingestion_events_refused_total"}, []string{"reason"}),
		seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "guidon_http_request_duration_seconds", Buckets: []float64{0.01, 0.1, 1}}, []string{"route", "method"}),
		accepted: prometheus.NewCounter(prometheus.CounterOpts{Name: "guidon_ingestion_events_accepted_total"}),
		lag:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "guidon_journal_reader_lag_seconds"}, []string{"reader"}),
		free:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "guidon_data_disk_free_bytes"}),
		size:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "guidon_data_disk_size_bytes"}),
	}
	reg.MustRegister(s.requests, s.refused, s.seconds, s.accepted, s.lag, s.free, s.size)
	s.Recorder = serverhealth.New(serverhealth.Watched(reg), func() time.Time { return s.now })
	return s
}

// step lets d pass and samples.
func (s *server) step(d time.Duration) {
	s.now = s.now.Add(d)
	s.Sample()
}

// last returns the newest value of a series.
func (s *server) last(name string) float64 {
	r := s.Read([]string{name}, s.now, s.now, serverhealth.Step)
	return r.Values[0][len(r.Values[0])-1]
}

func (s *server) want(t *testing.T, name string, want float64) {
	t.Helper()
	got := s.last(name)
	if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-4*math.Abs(want) {
		t.Errorf("%s is %v; want %v", name, got, want)
	}
}

var none = math.NaN()

func TestRates(t *testing.T) {
	s := newServer(t)
	s.accepted.Add(1000)
	s.Sample()
	s.want(t, "events_accepted", none) // the increase of one sample is not known
	s.accepted.Add(30)
	s.requests.WithLabelValues("/capture", "POST", "2xx").Add(15)
	s.requests.WithLabelValues("/i/v0/e", "POST", "5xx").Add(30)
	s.requests.WithLabelValues("/flags", "POST", "4xx").Add(60)
	s.requests.WithLabelValues("/api/users/@me", "GET", "2xx").Add(135)
	s.requests.WithLabelValues("/api/session", "GET", "4xx").Add(15) // a browser asks who is signed in
	s.step(15 * time.Second)
	s.want(t, "events_accepted", 2)
	s.want(t, "capture_requests", 3)
	s.want(t, "decide_requests", 4)
	s.want(t, "management_requests", 10)
	s.want(t, "responses_4xx", 4)
	s.want(t, "responses_5xx", 2)
	s.want(t, "events_processed", none) // the server does not have the metric
	s.step(15 * time.Second)
	s.want(t, "events_accepted", 0)
}

// A rate times Step is what was counted, after a start within a step, with a late timer and
// after a pause.
func TestRateIsOverWholeSteps(t *testing.T) {
	s := newServer(t)
	s.Sample()
	for _, after := range []time.Duration{11 * time.Second, 16 * time.Second, 14 * time.Second} {
		s.accepted.Add(3)
		s.step(after)
		s.want(t, "events_accepted", 3./15)
	}
	s.accepted.Add(3)
	s.step(60 * time.Second)
	s.want(t, "events_accepted", 3./60)
}

// Refused events are counted from the first one, also by what helps.
func TestRefusedEvents(t *testing.T) {
	s := newServer(t)
	s.Sample()
	s.refused.WithLabelValues("events_over_quota").Add(15)
	s.refused.WithLabelValues("invalid_api_key").Add(30)
	s.refused.WithLabelValues("too_many_events").Add(60)
	s.step(15 * time.Second)
	s.want(t, "events_over_quota", 1)
	s.want(t, "events_wrong_key", 2)
	s.want(t, "events_refused", 7)
}

// A counter that is less than before has no value, and the sample after it counts on.
func TestCounterReset(t *testing.T) {
	s := newServer(t)
	s.requests.WithLabelValues("/flags", "POST", "2xx").Add(900)
	s.Sample()
	s.requests.Reset()
	s.requests.WithLabelValues("/flags", "POST", "2xx").Add(15)
	s.seconds.WithLabelValues("/flags", "POST").Observe(0.5)
	s.step(15 * time.Second)
	s.want(t, "decide_requests", none)
	s.seconds.Reset()
	s.requests.WithLabelValues("/flags", "POST", "2xx").Add(30)
	s.step(15 * time.Second)
	s.want(t, "decide_requests", 2)
	s.want(t, "decide_p50", none)
}

func TestGauges(t *testing.T) {
	s := newServer(t)
	s.size.Set(1000)
	s.free.Set(300)
	s.lag.WithLabelValues("worker").Set(1)
	s.lag.WithLabelValues("worker/historical").Set(2)
	s.lag.WithLabelValues("sink/a").Set(3)
	s.lag.WithLabelValues("sink/b").Set(5)
	s.lag.WithLabelValues("follower/notifications").Set(9)
	s.Sample()
	for name, want := range map[string]float64{"disk_used": 700, "disk_free": 300, "lag_worker": 1, "lag_imports": 2, "lag_sinks": 5, "lag_clickhouse": none} {
		s.want(t, name, want)
	}
}

func TestQuantiles(t *testing.T) {
	s := newServer(t)
	for range 1000 { // before the first sample: they do not count
		s.seconds.WithLabelValues("/capture", "POST").Observe(100)
	}
	s.Sample()
	for i := range 100 {
		route := []string{"/capture", "/batch"}[i%2]
		s.seconds.WithLabelValues(route, "POST").Observe(map[bool]float64{true: 0.005, false: 0.5}[i < 90])
	}
	s.seconds.WithLabelValues("/flags", "POST").Observe(100)
	s.step(15 * time.Second)
	s.want(t, "capture_p50", 0.01*50/90)
	s.want(t, "capture_p95", 0.1+0.9*5/10)
	s.want(t, "decide_p99", 1) // the largest finite bound
	s.step(15 * time.Second)
	s.want(t, "capture_p50", none)
}

// The coarse ring and longer steps have the mean of rates and the peak of gauges.
func TestDownsampling(t *testing.T) {
	s := newServer(t)
	s.Sample()
	begin := s.now
	for i := 1; i <= 8; i++ { // two minutes: 12:00:15 to 12:02:00
		s.accepted.Add(float64(15 * i))
		s.lag.WithLabelValues("worker").Set(float64(i % 4))
		s.step(15 * time.Second)
	}
	r := s.Read([]string{"events_accepted", "lag_worker", "unknown"}, begin, s.now, time.Minute)
	if r.Step != time.Minute || !r.From.Equal(begin) {
		t.Fatalf("from %v in steps of %v", r.From, r.Step)
	}
	want := "[[2 5.5 8] [3 3 0] [NaN NaN NaN]]"
	if got := fmt.Sprint(r.Values); got != want {
		t.Errorf("each minute: %s; want %s", got, want)
	}
	fine := s.Read([]string{"events_accepted"}, begin, s.now, 25*time.Second)
	if got := fmt.Sprint(fine.Step, fine.Values); got != "30s [[1 2.5 4.5 6.5 8]]" {
		t.Errorf("each 25 seconds: %s", got)
	}
	if coarse := s.Read([]string{"events_accepted"}, begin.Add(-4*time.Hour), s.now, time.Second); coarse.Step != time.Minute || len(coarse.Values[0]) != 243 {
		t.Errorf("before the fine ring: %d values in steps of %v; want 243 each minute", len(coarse.Values[0]), coarse.Step)
	}
}

// A pause leaves a gap, and the rings keep their size for however long.
func TestGapsAndBounds(t *testing.T) {
	s := newServer(t)
	before := s.Bytes()
	s.free.Set(1)
	s.Sample()
	s.step(time.Minute)
	r := s.Read([]string{"disk_free"}, s.now.Add(-time.Minute), s.now, serverhealth.Step)
	if got := fmt.Sprint(r.Values); got != "[[1 NaN NaN NaN 1]]" {
		t.Errorf("%s; want a gap", got)
	}
	for range 6000 { // 25 hours
		s.step(15 * time.Second)
	}
	if s.Bytes() != before || before > 300<<10 {
		t.Errorf("%d bytes, then %d; want the same, at most 300 KiB", before, s.Bytes())
	}
	day := s.Read([]string{"disk_free"}, s.now.Add(-100*time.Hour), s.now.Add(time.Hour), time.Minute)
	missing := 0
	for _, v := range day.Values[0] {
		if math.IsNaN(v) {
			missing++
		}
	}
	// The first minute of the range is the slot that the newest one has overwritten.
	if len(day.Values[0]) != 1441 || missing > 1 {
		t.Errorf("%d minutes of which %d have no value; want a day", len(day.Values[0]), missing)
	}
}

// A clock that is set is followed, and values of another time are not shown.
func TestClockIsSet(t *testing.T) {
	s := newServer(t)
	s.free.Set(1)
	for range 20 {
		s.step(15 * time.Second)
	}
	s.free.Set(2)
	for _, jump := range []time.Duration{-2 * time.Minute, -48 * time.Hour, 72 * time.Hour} {
		s.step(jump)
		s.want(t, "disk_free", 2)
		r := s.Read([]string{"disk_free"}, s.now.Add(-time.Second), s.now.Add(time.Hour), serverhealth.Step)
		if n := len(r.Values[0]); n > 2 {
			t.Errorf("after %v: %d values; want none after now", jump, n)
		}
	}
	r := s.Read([]string{"disk_free"}, s.now.Add(-time.Hour), s.now, serverhealth.Step)
	for i, v := range r.Values[0][:len(r.Values[0])-1] {
		if !math.IsNaN(v) {
			t.Fatalf("value %d of %d is %v; want none from before the jump", i, len(r.Values[0]), v)
		}
	}
}

func TestWatch(t *testing.T) {
	main := prometheus.NewRegistry()
	reg := serverhealth.Watch(main)
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "guidon_other_total"})
	reg.MustRegister(other)
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "guidon_ingestion_events_accepted_total"})
	for i := range 2 {
		if err := reg.Register(c); (err == nil) != (i == 0) {
			t.Fatalf("registration %d: %v", i, err)
		}
	}
	gather := func(g prometheus.Gatherer) int {
		t.Helper()
		families, err := g.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return len(families)
	}
	if n, watched := gather(main), gather(serverhealth.Watched(reg)); n != 2 || watched != 1 {
		t.Errorf("%d families, of which %d are read; want 2, 1", n, watched)
	}
	if g, ok := reg.(prometheus.Gatherer); !ok || gather(g) != 2 {
		t.Error("the registry does not gather")
	}
	if !reg.Unregister(c) || gather(serverhealth.Watched(reg)) != 0 {
		t.Error("a collector that is gone is read")
	}
	if n := gather(serverhealth.Watched(prometheus.NewRegistry())); n != 0 {
		t.Errorf("another registry has %d", n)
	}
}

func TestStartStop(t *testing.T) {
	s := newServer(t)
	s.free.Set(7)
	s.Start()
	for deadline := time.Now().Add(time.Minute); math.IsNaN(s.last("disk_free")); {
		if time.Now().After(deadline) {
			t.Fatal("no sample")
		}
		time.Sleep(time.Millisecond)
	}
	s.Stop()
	s.want(t, "disk_free", 7)
}

// BenchmarkSample is the cost of one sample with the metrics of the process and 60 routes.
func BenchmarkSample(b *testing.B) {
	reg := serverhealth.Watch(prometheus.NewRegistry())
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "guidon_http_requests_total"}, []string{"route", "method", "status"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "guidon_http_request_duration_seconds", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 13)}, []string{"route", "method"})
	reg.MustRegister(requests, durations, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for i := range 60 {
		route := fmt.Sprintf("/api/%d", i)
		for _, class := range []string{"2xx", "4xx", "5xx"} {
			requests.WithLabelValues(route, "GET", class).Inc()
		}
		durations.WithLabelValues(route, "GET").Observe(0.01)
	}
	r := serverhealth.New(serverhealth.Watched(reg), nil)
	b.ReportAllocs()
	for b.Loop() {
		r.Sample()
	}
	b.ReportMetric(float64(r.Bytes()), "ring-bytes")
}
