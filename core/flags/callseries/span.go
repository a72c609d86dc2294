package callseries

import (
	"slices"
	"time"
)

// span is the intervals of a series: hours, or days of a time zone.
type span struct {
	hours  bool
	starts []time.Time
	to     time.Time
	width  time.Duration // of the intervals that are counted; each is inside of one of the series
}

// newSpan returns the last days, today included, or their hours, the current one included.
func newSpan(now time.Time, location *time.Location, days int, hours bool) span {
	now = now.In(location)
	sp := span{hours: hours, width: time.Hour}
	if hours {
		sp.to = now.Truncate(time.Hour).Add(time.Hour)
		for i := days * 24; i > 0; i-- {
			sp.starts = append(sp.starts, sp.to.Add(-time.Duration(i)*time.Hour))
		}
		return sp
	}
	day := func(ahead int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+ahead, 0, 0, 0, 0, location)
	}
	for i := 1 - days; i <= 0; i++ {
		sp.starts = append(sp.starts, day(i))
	}
	sp.to = day(1)
	if sp.to.Sub(sp.starts[0]) == time.Duration(days)*24*time.Hour {
		sp.width = 24 * time.Hour
	}
	return sp
}

// place returns the interval of the series that has a counted interval.
func (sp *span) place(counted int64) int {
	at := sp.starts[0].Add(time.Duration(counted) * sp.width)
	i, found := slices.BinarySearchFunc(sp.starts, at, time.Time.Compare)
	if !found {
		i--
	}
	return max(i, 0)
}

func (sp *span) request(project int64, key string) request {
	return request{project: project, key: key, from: sp.starts[0].Unix(), width: sp.to.Sub(sp.starts[0]), hours: sp.hours}
}
