package history

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// Interval is the width of a bucket of a series.
type Interval string

// The intervals. A week begins on Monday.
const (
	Hour  Interval = "hour"
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
	Year  Interval = "year"
)

// maxBuckets bounds the buckets of a series.
const maxBuckets = 10_000

// begin is the start of the interval that contains t, in t's time zone.
func (i Interval) begin(t time.Time) time.Time {
	y, m, d := t.Date()
	switch i {
	case Hour:
		// By the local clock; an hour that occurs twice counts as two.
		return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case Week:
		return midnight(y, m, d-(int(t.Weekday())+6)%7, t.Location())
	case Month:
		return midnight(y, m, 1, t.Location())
	case Year:
		return midnight(y, time.January, 1, t.Location())
	case Day:
	}
	return midnight(y, m, d, t.Location())
}

// next is the start of the interval after the one that starts at t.
func (i Interval) next(t time.Time) time.Time {
	y, m, d := t.Date()
	switch i {
	case Hour:
		return i.begin(t.Add(time.Hour))
	case Week:
		return midnight(y, m, d+7, t.Location())
	case Month:
		return midnight(y, m+1, 1, t.Location())
	case Year:
		return midnight(y+1, time.January, 1, t.Location())
	case Day:
	}
	return midnight(y, m, d+1, t.Location())
}

// midnight is the first moment of a day, later than 0:00 where the clocks go
// forward at that time.
func midnight(y int, m time.Month, d int, loc *time.Location) time.Time {
	t := time.Date(y, m, d, 0, 0, 0, 0, loc)
	if want := time.Date(y, m, d, 0, 0, 0, 0, time.UTC); t.Day() == want.Day() {
		return t
	}
	// 0:00 does not exist; time.Date chose a time of the day before.
	_, before := t.Zone()
	_, after := t.Add(3 * time.Hour).Zone()
	return t.Add(time.Duration(after-before) * time.Second)
}

// starts are the starts of all intervals that overlap the time.
func (i Interval) starts(from, to time.Time) ([]time.Time, error) {
	var out []time.Time
	for t := i.begin(from); t.Before(to) || len(out) == 0; t = i.next(t) {
		if len(out) == maxBuckets {
			return nil, fault.Fieldf("interval", "invalid_input", "A series has at most %d intervals: ask for longer ones or a shorter time.", maxBuckets)
		}
		out = append(out, t)
	}
	return out, nil
}

// Series returns the number of events in [from, to) that fit the action, for
// each interval of the zone, also for those without events. It waits as Count
// does.
func (h *Service) Series(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time, i Interval) ([]Bucket, CountStatus, error) {
	if from.IsZero() {
		var err error
		if from, err = h.firstOf(ctx, a.ProjectID, from); err != nil {
			return nil, CountStatus{}, fmt.Errorf("count action %d: %w", a.ID, err)
		}
	}
	starts, err := i.starts(from.In(loc), to)
	if err != nil {
		return nil, CountStatus{}, err
	}
	p, t, f, err := h.requestCounts(ctx, a, loc, from, to)
	if err != nil {
		return nil, CountStatus{}, err
	}
	out := make([]Bucket, len(starts))
	for n, start := range starts {
		out[n].Start = start
		if p.neverMatches() {
			continue
		}
		first, last := max(quarterOf(start), quarterOf(from)), quarterOf(to)+1
		if n+1 < len(starts) {
			last = quarterOf(starts[n+1])
		}
		out[n].Count = t.sum(first, last)
		f.Count += out[n].Count
	}
	if p.neverMatches() || len(out) == 0 {
		return out, f, nil
	}
	return out, f, h.trim(ctx, a, p, t, out, &f, from, to)
}

// trim subtracts events before from from the first bucket, and those not
// before to from the last.
func (h *Service) trim(ctx context.Context, a *Definition, p *plan, t *actionCounts, out []Bucket, f *CountStatus, from, to time.Time) error {
	early, err := h.countPartialQuarter(ctx, a, p, t, quarterStart(quarterOf(from)), from)
	if err != nil {
		return fmt.Errorf("count action %d: %w", a.ID, err)
	}
	late, err := h.countPartialQuarter(ctx, a, p, t, to, quarterStart(quarterOf(to)+1))
	if err != nil {
		return fmt.Errorf("count action %d: %w", a.ID, err)
	}
	f.Count = max(0, f.Count-early-late)
	first, last := &out[0], &out[len(out)-1]
	first.Count = max(0, first.Count-early)
	last.Count = max(0, last.Count-late)
	return nil
}
