// Package calendar reads the dates of queries and divides times into intervals, by
// the clock of a time zone.
package calendar

import (
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

// Starts returns the starts of all intervals that overlap the time [from, to). More
// than 10,000 are an Invalid fault.
func (i Interval) Starts(from, to time.Time) ([]time.Time, error) {
	var out []time.Time
	for t := i.begin(from); t.Before(to) || len(out) == 0; t = i.next(t) {
		if len(out) == maxBuckets {
			return nil, fault.Fieldf("interval", "invalid_input", "A series has at most %d intervals: ask for longer ones or a shorter time.", maxBuckets)
		}
		out = append(out, t)
	}
	return out, nil
}
