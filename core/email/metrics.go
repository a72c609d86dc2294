package email

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct{ emails *prometheus.CounterVec }

// newMetrics registers nothing if reg is nil.
func newMetrics(reg prometheus.Registerer, s *Sender) (metrics, error) {
	m := metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_emails_total",
		Help: "E-mails by kind (invitation, reset) and result: sent, failed (retries exhausted), retried.",
	}, []string{"kind", "result"})}
	if reg == nil {
		return m, nil
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "guidon_emails_waiting", Help: "Queued e-mails.",
	}, func() float64 { return float64(s.waiting()) })
	return m, errors.Join(reg.Register(m.emails), reg.Register(waiting))
}
