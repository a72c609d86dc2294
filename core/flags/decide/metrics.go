package decide

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/usecount"
)

// metrics counts decided flags and lookups. Nil disables it.
type metrics struct {
	evaluated prometheus.Counter
	failed    [eval.Causes]prometheus.Counter
	lookups   map[string][len(lookupNames)]prometheus.Counter
	took      [len(lookupNames)]prometheus.Observer
	byFlag    *usecount.Counter
	age       prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, broken *brokenDefinitions, b *breaker) *metrics {
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
	m.age = f.NewHistogram(prometheus.HistogramOpts{
		Name: "guidon_flags_known_properties_age_seconds", Help: "Age of properties that were used because a lookup failed.",
		Buckets: []float64{1, 5, 30, 120, 600, 3600},
	})
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "guidon_flags_lookups_paused", Help: "1 while lookups are skipped because too many failed, else 0.",
	}, func() float64 {
		if b.isOpen() {
			return 1
		}
		return 0
	})
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
	for _, outcome := range []string{"ok", "failed", "paused", "canceled", "known"} {
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
func (m *metrics) recordEvaluation(projectID int64, e *eval.Evaluation) {
	if m == nil {
		return
	}
	if m.byFlag != nil {
		flags := m.byFlag.Project(projectID)
		for i := range e.Len() {
			_, d := e.Decision(i)
			flags.Count(d.Key)
		}
	}
	m.evaluated.Add(float64(e.Len()))
	for i := range e.Len() {
		if cause := e.Failure(i); cause != eval.CauseNone {
			m.failed[cause].Inc()
		}
	}
}

// recordAge observes the age of known properties.
func (m *metrics) recordAge(age time.Duration) {
	if m != nil {
		m.age.Observe(age.Seconds())
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
