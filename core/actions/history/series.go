package history

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/actions/history/calendar"
)

// Interval is the width of a bucket of a series.
type Interval = calendar.Interval

// The intervals. A week begins on Monday.
const (
	Hour  = calendar.Hour
	Day   = calendar.Day
	Week  = calendar.Week
	Month = calendar.Month
	Year  = calendar.Year
)

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
	starts, err := i.Starts(from.In(loc), to)
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
