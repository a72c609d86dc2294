package serverhealth

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// sample is one reading of the metrics, by series.
type sample struct {
	at     time.Time
	totals []float64 // counters and gauges; NaN without the metric
	counts []buckets // histograms
}

// buckets are the upper bounds of a histogram and the observations up to each. The last
// bound is +Inf.
type buckets struct {
	bounds []float64
	counts []float64
}

// newSample reads the series of a list from the metrics of each family.
func newSample(at time.Time, list []definition, named map[string][]*dto.Metric) sample {
	s := sample{at: at, totals: make([]float64, len(list)), counts: make([]buckets, len(list))}
	for i := range list {
		d := &list[i]
		if d.kind == quantile {
			s.counts[i] = readBuckets(d, named)
		} else {
			s.totals[i] = readTotal(d, named)
		}
	}
	return s
}

// readTotal returns the sum, or the largest, of the matching metrics of a definition.
func readTotal(d *definition, named map[string][]*dto.Metric) float64 {
	var all accumulator
	each(d, named, func(m *dto.Metric) { all.add(value(m)) })
	switch {
	case all.n == 0 && d.fromZero:
		return 0
	case all.n == 0:
		return math.NaN()
	case d.kind == most:
		return all.max
	}
	for _, m := range named[d.minus] {
		all.sum -= value(m)
	}
	return all.sum
}

func readBuckets(d *definition, named map[string][]*dto.Metric) buckets {
	var b buckets
	each(d, named, func(m *dto.Metric) {
		h := m.GetHistogram()
		if b.bounds == nil {
			for _, one := range h.GetBucket() {
				if !math.IsInf(one.GetUpperBound(), 1) {
					b.bounds = append(b.bounds, one.GetUpperBound())
				}
			}
			b.bounds = append(b.bounds, math.Inf(1))
			b.counts = make([]float64, len(b.bounds))
		}
		if len(h.GetBucket()) > len(b.bounds) {
			return // another histogram
		}
		for i, one := range h.GetBucket() {
			if one.GetUpperBound() == b.bounds[i] {
				b.counts[i] += float64(one.GetCumulativeCount())
			}
		}
		if !hasInf(h) {
			b.counts[len(b.counts)-1] += float64(h.GetSampleCount())
		}
	})
	return b
}

func hasInf(h *dto.Histogram) bool {
	n := len(h.GetBucket())
	return n > 0 && math.IsInf(h.GetBucket()[n-1].GetUpperBound(), 1)
}

func each(d *definition, named map[string][]*dto.Metric, f func(*dto.Metric)) {
	for _, name := range d.metrics {
		for _, m := range named[name] {
			if d.match == nil || d.match(m) {
				f(m)
			}
		}
	}
}

func value(m *dto.Metric) float64 {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetHistogram() != nil:
		return float64(m.GetHistogram().GetSampleCount())
	}
	return m.GetUntyped().GetValue()
}

// since returns the values of all series between two samples. The first sample has rates
// and quantiles of none. A rate is over whole Steps, also where a server started within
// one or the timer was late: a rate times Step is what was counted.
func (s *sample) since(list []definition, before *sample) []float64 {
	out := make([]float64, len(list))
	elapsed := max(Step, s.at.Sub(before.at).Round(Step)).Seconds()
	for i := range list {
		d := &list[i]
		out[i] = math.NaN()
		switch d.kind {
		case sum, most:
			out[i] = s.totals[i]
		case rate:
			if !before.at.IsZero() && s.totals[i] >= before.totals[i] {
				out[i] = (s.totals[i] - before.totals[i]) / elapsed
			}
		case count:
			if !before.at.IsZero() && s.totals[i] >= before.totals[i] {
				out[i] = s.totals[i] - before.totals[i]
			}
		case quantile:
			if !before.at.IsZero() {
				out[i] = quantileOf(d.q, s.counts[i].minus(before.counts[i]))
			}
		}
		if d.scale != 0 {
			out[i] *= d.scale
		}
	}
	return out
}

// minus returns the observations since before, none if the histogram has fewer than
// before.
func (b buckets) minus(before buckets) buckets {
	out := buckets{b.bounds, append([]float64(nil), b.counts...)}
	for i, n := range before.counts {
		if i >= len(out.counts) || out.counts[i] < n {
			return buckets{}
		}
		out.counts[i] -= n
	}
	return out
}

// quantileOf returns the q-quantile of a histogram as Prometheus does: by linear
// interpolation within a bucket, and the largest finite bound for the last one. It is NaN
// without observations.
func quantileOf(q float64, b buckets) float64 {
	n := len(b.counts)
	if n < 2 || b.counts[n-1] <= 0 {
		return math.NaN()
	}
	rank := q * b.counts[n-1]
	lower, below := 0.0, 0.0
	for i, count := range b.counts[:n-1] {
		if count >= rank && count > below {
			return lower + (b.bounds[i]-lower)*max(0, rank-below)/(count-below)
		}
		lower, below = b.bounds[i], count
	}
	return b.bounds[n-2]
}
