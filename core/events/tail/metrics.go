package tail

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts viewers and events. Nil disables it.
type metrics struct {
	refused prometheus.Counter
	sent    prometheus.Counter
	skipped prometheus.Counter
	left    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, open func() int) *metrics {
	if reg == nil {
		return nil
	}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "guidon_live_viewers", Help: "Open streams of live events."}, func() float64 { return float64(open()) })
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "guidon_live_" + name, Help: help})
	}
	return &metrics{
		refused: counter("viewers_refused_total", "Live streams refused by events.live_viewers."),
		sent:    counter("events_queued_total", "Events queued for viewers of live events."),
		skipped: counter("events_skipped_total", "Live events that were skipped: rate limit, costly filter or slow client."),
		left:    counter("events_unread_total", "Stored events that live streams skipped because the reader lagged."),
	}
}

func (m *metrics) refuse() {
	if m != nil {
		m.refused.Inc()
	}
}

func (m *metrics) offered(sent, skipped int) {
	if m != nil {
		m.sent.Add(float64(sent))
		m.skipped.Add(float64(skipped))
	}
}

func (m *metrics) unread(n int64) {
	if m != nil {
		m.left.Add(float64(n))
	}
}
