// Package metrics counts the requests and connections of the HTTP server.
//
// A series of a route is created with its first request, so that /metrics lists
// no series without a value; afterwards it is at hand without a lookup.
package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// Metrics counts requests. Its methods are safe for concurrent use.
type Metrics struct {
	active   atomic.Int64
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	failed   prometheus.Counter // errors of accept
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
	managing atomic.Int64
}

// New registers the metrics; reg may be nil.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
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
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_http_refused_total",
		Help: "Requests and connections refused or closed for a limit, by reason.",
	}, []string{"reason"})
	m.received = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_http_request_bytes_total", Help: "Bodies of requests as received, by route pattern and method.",
	}, []string{"route", "method"})
	m.sent = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_http_response_bytes_total", Help: "Bodies of answers without those of streams, by route pattern and method.",
	}, []string{"route", "method"})
	m.failed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "guidon_http_accept_errors_total",
		Help: "Connections that could not be accepted, such as for a lack of file descriptors.",
	})
	if reg != nil {
		reg.MustRegister(m.requests, m.duration, m.refused, m.failed, m.received, m.sent, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "guidon_http_management_requests_in_flight",
			Help: "Requests with a personal or secret key being handled right now: those that run and those that wait for the database.",
		}, func() float64 { return float64(m.managing.Load()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "guidon_http_requests_in_flight",
			Help: "Requests being handled right now.",
		}, func() float64 { return float64(m.active.Load()) }))
	}
	return m
}

// Refused counts a request or a connection that was refused or closed for a
// limit.
func (m *Metrics) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// AcceptFailed returns a function that counts failures to accept a connection
// and logs one in ten seconds.
func (m *Metrics) AcceptFailed(log *zap.Logger) func(error) {
	once := rate.Sometimes{Interval: 10 * time.Second}
	return func(err error) {
		m.failed.Inc()
		once.Do(func() {
			log.Error("connection not accepted; idle connections are closed", zap.Error(err))
		})
	}
}

// Begin and End count the requests in flight.
func (m *Metrics) Begin() { m.active.Add(1) }

// End ends what Begin began.
func (m *Metrics) End() { m.active.Add(-1) }

// BeginManaging and EndManaging count the management requests in flight.
func (m *Metrics) BeginManaging() { m.managing.Add(1) }

// EndManaging ends what BeginManaging began.
func (m *Metrics) EndManaging() { m.managing.Add(-1) }

// Route returns the metrics of a route.
func (m *Metrics) Route(method, pattern string) *Route {
	return &Route{all: m, method: method, pattern: pattern}
}

// Route has the metrics of one route, with its series at hand.
type Route struct {
	all             *Metrics
	method, pattern string
	classes         [6]atomic.Pointer[prometheus.Counter]
	duration        atomic.Pointer[prometheus.Observer]
	bodies          atomic.Pointer[bodies]
}

// bodies counts the bytes of the bodies of a route.
type bodies struct{ received, sent prometheus.Counter }

// ObserveBodies counts the bodies of a request and its answer; a negative size is
// unknown and counts nothing.
func (m *Route) ObserveBodies(received, sent int) {
	b := m.bodies.Load()
	if b == nil {
		b = &bodies{m.all.received.WithLabelValues(m.pattern, m.method), m.all.sent.WithLabelValues(m.pattern, m.method)}
		m.bodies.Store(b)
	}
	if received > 0 {
		b.received.Add(float64(received))
	}
	if sent > 0 {
		b.sent.Add(float64(sent))
	}
}

// Observe counts a request with its status and duration.
func (m *Route) Observe(status int, took time.Duration) {
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
