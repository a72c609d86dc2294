package serverhealth

import (
	"math"
	"time"
)

// ring has the newest values of all series, at fixed distances of time. Slots are counted
// since the epoch of Unix, so a gap in sampling is a gap in the values.
type ring struct {
	step   time.Duration
	slots  int64
	series int
	values []float32 // by slot, then by series; NaN without a value
	last   int64     // the newest slot
	empty  bool      // before the first advance
}

func newRing(step, span time.Duration, series int) ring {
	r := ring{step: step, slots: int64(span / step), series: series, empty: true}
	r.values = make([]float32, int(r.slots)*series)
	r.clear()
	return r
}

func (r *ring) bytes() int     { return 4 * len(r.values) }
func (r *ring) seconds() int64 { return int64(r.step / time.Second) }

func (r *ring) clear() {
	for i := range r.values {
		r.values[i] = float32(math.NaN())
	}
}

func (r *ring) row(slot int64) []float32 {
	at := int(slot%r.slots) * r.series
	return r.values[at : at+r.series]
}

// advance makes slot the newest one, without values in the slots that were skipped. A
// clock that went back further than the ring reaches, or forward by more, leaves it
// empty; one that went back by less overwrites what is newer than it.
func (r *ring) advance(slot int64) {
	back, forward := r.last-slot, slot-r.last
	switch {
	case r.empty || forward >= r.slots || back >= r.slots:
		r.clear()
	case back > 0:
		for s := slot + 1; s <= r.last; s++ {
			fillNaN(r.row(s))
		}
	default:
		for s := r.last + 1; s <= slot; s++ {
			fillNaN(r.row(s))
		}
	}
	r.last, r.empty = slot, false
}

func fillNaN(row []float32) {
	for i := range row {
		row[i] = float32(math.NaN())
	}
}

// set sets a value of the newest slot.
func (r *ring) set(series int, v float64) { r.row(r.last)[series] = float32(v) }

// get returns a value, NaN for slots that the ring does not have.
func (r *ring) get(series int, slot int64) float64 {
	if r.empty || slot > r.last || slot <= r.last-r.slots || slot < 0 {
		return math.NaN()
	}
	return float64(r.row(slot)[series])
}

// accumulator makes one value of several.
type accumulator struct {
	sum, max float64
	n        int
}

// add adds a value; NaN adds nothing.
func (a *accumulator) add(v float64) {
	if math.IsNaN(v) {
		return
	}
	if a.n == 0 || v > a.max {
		a.max = v
	}
	a.sum += v
	a.n++
}

// value returns the sum, the largest value or the mean, as the series is made; NaN without
// values.
func (a *accumulator) value(d *definition) float64 {
	switch {
	case a.n == 0:
		return math.NaN()
	case d.kind == count:
		return a.sum
	case d.kind == rate:
		return a.sum / float64(a.n)
	}
	return a.max
}
