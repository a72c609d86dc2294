package web

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics counts requests. A series is created with its first request,
// so that /metrics lists no series without a value.
type requestMetrics struct {
	active   atomic.Int64
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRequestMetrics(reg prometheus.Registerer) *requestMetrics {
	m := &requestMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guidon_http_requests_total",
			Help: "Requests answered, by route pattern, method and class of status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "guidon_http_request_duration_seconds",
			Help:    "Time from the end of the request to the end of its handler.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route", "method"}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.duration, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "guidon_http_requests_in_flight",
			Help: "Requests being handled right now.",
		}, func() float64 { return float64(m.active.Load()) }))
	}
	return m
}

func (m *requestMetrics) begin() { m.active.Add(1) }
func (m *requestMetrics) end()   { m.active.Add(-1) }

func (m *requestMetrics) route(method, pattern string) *routeMetrics {
	return &routeMetrics{all: m, method: method, pattern: pattern}
}

// routeMetrics are the metrics of one route, with its series at hand.
type routeMetrics struct {
	all             *requestMetrics
	method, pattern string
	classes         [6]atomic.Pointer[prometheus.Counter]
	duration        atomic.Pointer[prometheus.Observer]
}

func (m *routeMetrics) observe(status int, took time.Duration) {
	class := min(max(status/100, 0), 5)
	counter := m.classes[class].Load()
	if counter == nil {
		c := m.all.requests.WithLabelValues(m.pattern, m.method, strconv.Itoa(class)+"xx")
		counter = &c
		m.classes[class].Store(counter)
	}
	(*counter).Inc()
	duration := m.duration.Load()
	if duration == nil {
		o := m.all.duration.WithLabelValues(m.pattern, m.method)
		duration = &o
		m.duration.Store(duration)
	}
	(*duration).Observe(took.Seconds())
}
