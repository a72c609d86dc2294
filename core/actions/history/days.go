package history

import (
	"encoding/binary"
	"math"
	"time"
)

// quarter is the width of the counted intervals: every time zone in use starts
// its days, hours and weeks with one.
const (
	quarter     = 15 * time.Minute
	dayQuarters = 96
)

// day is a counted day in UTC.
type day struct {
	lastRow int64 // counts hold its events up to this row
	counts  [dayQuarters]int64
	stale   bool // to be counted again
	dirty   bool // differs from the stored day
}

// actionCounts are the counts of an action.
type actionCounts struct {
	serial       int64 // 0 if nothing is stored
	fingerprint  string
	erased       int64
	lastRow      int64 // every day holds its events up to this row
	undecided    int64
	calculatedAt time.Time
	requestedAt  time.Time
	days         map[int64]*day
	reset        bool // the stored days are to be deleted
}

// quarterOf is the number of the quarter that t is in.
func quarterOf(t time.Time) int64 { return floorDiv(t.UnixMicro(), quarter.Microseconds()) }

func quarterStart(q int64) time.Time { return time.UnixMicro(q * quarter.Microseconds()).UTC() }

func dayStart(d int64) time.Time { return quarterStart(d * dayQuarters) }

// dayOf is the number of the day that t is in.
func dayOf(t time.Time) int64 { return floorDiv(quarterOf(t), dayQuarters) }

func floorDiv(a, b int64) int64 {
	d := a / b
	if a%b < 0 {
		d--
	}
	return d
}

// quarter is the count of a quarter, nil if its day was not counted.
func (t *actionCounts) quarter(q int64) *int64 {
	d := t.days[floorDiv(q, dayQuarters)]
	if d == nil {
		return nil
	}
	return &d.counts[q-floorDiv(q, dayQuarters)*dayQuarters]
}

// sum is the number of events in the quarters [from, to).
func (t *actionCounts) sum(from, to int64) (n int64) {
	if to-from > int64(len(t.days))*dayQuarters {
		for number, d := range t.days {
			for i, count := range d.counts {
				if q := number*dayQuarters + int64(i); q >= from && q < to {
					n += count
				}
			}
		}
		return n
	}
	for q := from; q < to; q++ {
		if c := t.quarter(q); c != nil {
			n += *c
		}
	}
	return n
}

// missingDays returns the days of [from, to] that are not counted, in ranges
// of at most most days, the newest first.
func (t *actionCounts) missingDays(from, to, most int64) (spans [][2]int64) {
	for d := to; d >= from; d-- {
		if have := t.days[d]; have != nil && !have.stale {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1][0] == d+1 && spans[n-1][1]-d < most {
			spans[n-1][0] = d
			continue
		}
		spans = append(spans, [2]int64{d, d})
	}
	return spans
}

// minRow is the row up to which all days hold their events.
func (t *actionCounts) minRow() int64 {
	low := int64(math.MaxInt64)
	for _, d := range t.days {
		low = min(low, max(d.lastRow, t.lastRow))
	}
	if low == math.MaxInt64 {
		return t.lastRow
	}
	return low
}

// encodeCounts encodes the quarters of a day, without trailing zeros.
func encodeCounts(counts *[dayQuarters]int64) []byte {
	last := dayQuarters
	for last > 0 && counts[last-1] == 0 {
		last--
	}
	out := []byte{}
	for _, n := range counts[:last] {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return out
}

// decodeCounts decodes the output of encodeCounts. It returns false for other
// data.
func decodeCounts(raw []byte) (counts [dayQuarters]int64, ok bool) {
	for i := 0; len(raw) > 0; i++ {
		n, size := binary.Uvarint(raw)
		if size <= 0 || i >= dayQuarters || n > math.MaxInt64 {
			return counts, false
		}
		counts[i], raw = int64(n), raw[size:]
	}
	return counts, true
}
