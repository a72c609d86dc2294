package serverhealth

import (
	"math"
	"slices"
	"time"
)

// table has a list of series in both rings.
type table struct {
	list   []definition
	fine   ring
	coarse ring
	minute []accumulator // of the newest slot of coarse
}

func newTable(list []definition) table {
	return table{
		list: list, fine: newRing(Step, FineSpan, len(list)), coarse: newRing(CoarseStep, CoarseSpan, len(list)),
		minute: make([]accumulator, len(list)),
	}
}

func (t *table) bytes() int { return t.fine.bytes() + t.coarse.bytes() }

// add adds the values of all series at a time.
func (t *table) add(now time.Time, values []float64) {
	t.fine.advance(now.Unix() / t.fine.seconds())
	if minute := now.Unix() / t.coarse.seconds(); minute != t.coarse.last || t.coarse.empty {
		t.coarse.advance(minute)
		clear(t.minute)
	}
	for i, v := range values {
		t.fine.set(i, v)
		t.minute[i].add(v)
		t.coarse.set(i, t.minute[i].value(&t.list[i]))
	}
}

// read is Recorder.Read of these series.
func (t *table) read(names []string, from, to time.Time, step time.Duration, now time.Time) Range {
	from, to = later(from, now.Add(-CoarseSpan)), earlier(to, now)
	source := &t.coarse
	if step < CoarseStep && !from.Before(now.Add(-FineSpan)) {
		source = &t.fine
	}
	per := max(1, int64((step+source.step-1)/source.step)) // slots of the ring per value
	first := from.Unix() / source.seconds() / per * per
	last := to.Unix() / source.seconds()
	out := Range{From: time.Unix(first*source.seconds(), 0).UTC(), Step: time.Duration(per) * source.step}
	for _, name := range names {
		at := slices.IndexFunc(t.list, func(d definition) bool { return d.name == name })
		values := []float64{}
		for slot := first; slot <= last; slot += per {
			if at < 0 {
				values = append(values, math.NaN())
				continue
			}
			var a accumulator
			for i := range per {
				a.add(source.get(at, slot+i))
			}
			values = append(values, a.value(&t.list[at]))
		}
		out.Values = append(out.Values, values)
	}
	return out
}
