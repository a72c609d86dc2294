package decide

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// metrics counts decided flags and lookups. Nil disables it.
type metrics struct {
	evaluated prometheus.Counter
	failed    [eval.Causes]prometheus.Counter
	lookups   map[string][len(lookupNames)]prometheus.Counter
	took      [len(lookupNames)]prometheus.Observer
}

func newMetrics(reg prometheus.Registerer, broken *brokenDefinitions) *metrics {
	if reg == nil {
		return nil
	}
	f := promauto.With(reg)
	m := &metrics{
		evaluated: f.NewCounter(prometheus.CounterOpts{
			Name: "guidon_flags_evaluated_total", Help: "Flags decided for clients, those left out included.",
		}),
		lookups: map[string][len(lookupNames)]prometheus.Counter{},
	}
	failed := f.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_flags_left_out_total", Help: "Flags left out of answers because they could not be computed, by cause.",
	}, []string{"cause"})
	for c := eval.CauseDefinition; int(c) < eval.Causes; c++ {
		m.failed[c] = failed.WithLabelValues(c.Code())
	}
	lookups := f.NewCounterVec(prometheus.CounterOpts{
		Name: "guidon_flags_lookups_total", Help: "Lookups of stored data that flags needed, by kind and outcome.",
	}, []string{"data", "outcome"})
	took := f.NewHistogramVec(prometheus.HistogramOpts{
		Name: "guidon_flags_lookup_duration_seconds", Help: "Duration of lookups that flags needed.",
		Buckets: []float64{25e-6, 100e-6, 500e-6, 2e-3, 10e-3, 50e-3, 300e-3},
	}, []string{"data"})
	for kind, count := range map[string]func() float64{
		"flag":   func() float64 { return float64(broken.sum().flags) },
		"cohort": func() float64 { return float64(broken.sum().cohorts) },
	} {
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "guidon_flags_broken_definitions", ConstLabels: prometheus.Labels{"kind": kind},
			Help: "Stored flags and cohorts that are not evaluated: unreadable, or with regular expressions over a limit.",
		}, count)
	}
	for _, outcome := range []string{"ok", "failed", "paused"} {
		var row [len(lookupNames)]prometheus.Counter
		for kind, name := range lookupNames {
			row[kind] = lookups.WithLabelValues(name, outcome)
			m.took[kind] = took.WithLabelValues(name)
		}
		m.lookups[outcome] = row
	}
	return m
}

// recordEvaluation counts the flags of a finished evaluation.
func (m *metrics) recordEvaluation(e *eval.Evaluation) {
	if m == nil {
		return
	}
	m.evaluated.Add(float64(e.Len()))
	for i := range e.Len() {
		if cause := e.Failure(i); cause != eval.CauseNone {
			m.failed[cause].Inc()
		}
	}
}

// recordLookup counts a lookup. A lookup that was skipped took no time.
func (m *metrics) recordLookup(kind int, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.lookups[outcome][kind].Inc()
	if took > 0 {
		m.took[kind].Observe(took.Seconds())
	}
}
