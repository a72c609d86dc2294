package schedule

import (
	"fmt"
	"time"
)

// Times are when backups are due: at an interval, or at times of the day. The zero
// value is never.
type Times struct {
	Every time.Duration // between two backups; 0: At
	At    []TimeOfDay   // in the local time zone of the process
}

// TimeOfDay is a number of minutes from midnight.
type TimeOfDay int

// ParseTimeOfDay parses a time such as 02:30.
func ParseTimeOfDay(text string) (TimeOfDay, error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of the day such as \"02:30\"", text)
	}
	return TimeOfDay(at.Hour()*60 + at.Minute()), nil
}

// Enabled reports whether there are backups.
func (t Times) Enabled() bool { return t.Every > 0 || len(t.At) > 0 }

// next returns when the backup after one of the time last is due.
func (t Times) next(last time.Time) time.Time {
	if t.Every > 0 {
		return last.Add(t.Every)
	}
	var next time.Time
	year, month, day := last.Local().Date()
	for days := range 3 { // an hour that a time zone skips may be on the day after
		for _, at := range t.At {
			one := time.Date(year, month, day+days, 0, int(at), 0, 0, time.Local)
			if one.After(last) && (next.IsZero() || one.Before(next)) {
				next = one
			}
		}
	}
	return next
}

// Longest returns the longest time between two backups, without changes of the time
// zone; 0 without backups.
func (t Times) Longest() time.Duration {
	if t.Every > 0 {
		return t.Every
	}
	if len(t.At) == 0 {
		return 0
	}
	longest := time.Duration(0)
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.Local)
	for at := begin; at.Before(begin.Add(48 * time.Hour)); {
		next := t.next(at)
		longest, at = max(longest, next.Sub(at)), next
	}
	return min(longest, 24*time.Hour)
}
