package calendar

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

var relativeDate = regexp.MustCompile(`^-?(\d{0,5})([hdwmqy])(Start|End)?$`)

// ReadDate parses a date of a query: "2026-03-01", "2026-03-01T12:00:00Z",
// "-7d" (hours h, days d, weeks w, months m, quarters q, years y; with the
// suffix Start or End as in -1mStart and dStart), "now", or "all", which is
// the zero time. A time without an offset is in now's zone. A date alone, and
// a relative one without hours, is the start of its day; with end set, its
// last moment. Errors are Invalid faults.
func ReadDate(text string, now time.Time, end bool) (time.Time, error) {
	switch text {
	case "all":
		return time.Time{}, nil
	case "now":
		return now, nil
	}
	if m := relativeDate.FindStringSubmatch(text); m != nil {
		return relative(m, now, end), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return intervalEdge(Day, t, end), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		// An unescaped plus sign arrives as a space.
		for _, text := range []string{text, strings.Replace(text, " ", "+", 1)} {
			if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fault.New(fault.Invalid, "invalid_input", "Not a date. Write 2026-03-01, 2026-03-01T12:00:00Z or -7d.")
}

func relative(m []string, now time.Time, end bool) time.Time {
	n, _ := strconv.Atoi(m[1]) // "" is 0
	t := now
	y, mo, d := now.Date()
	wall := func(y int, mo time.Month, d int) time.Time {
		return time.Date(y, mo, d, now.Hour(), now.Minute(), now.Second(), now.Nanosecond(), now.Location())
	}
	unit := Day
	switch m[2] {
	case "h":
		t, unit = now.Add(-time.Duration(n)*time.Hour), Hour
	case "d":
		t = wall(y, mo, d-n)
	case "w":
		t, unit = wall(y, mo, d-7*n), Week
	case "m":
		t, unit = months(wall, y, mo, d, n), Month
	case "q":
		t, unit = months(wall, y, mo, d, 3*n), Month
	case "y":
		t = months(wall, y, mo, d, 12*n)
		if m[3] != "" {
			return year(t, m[3] == "End")
		}
	}
	switch {
	case m[3] != "":
		return intervalEdge(unit, t, m[3] == "End")
	case m[2] == "h":
		return t
	}
	return intervalEdge(Day, t, end)
}

// months subtracts n months, and clamps the day to the length of that month.
func months(wall func(int, time.Month, int) time.Time, y int, m time.Month, d, n int) time.Time {
	last := time.Date(y, m-time.Month(n)+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return wall(y, m-time.Month(n), min(d, last))
}

func year(t time.Time, end bool) time.Time {
	if end {
		return midnight(t.Year()+1, time.January, 1, t.Location()).Add(-time.Microsecond)
	}
	return midnight(t.Year(), time.January, 1, t.Location())
}

// intervalEdge is the start of the interval that contains t, or its last
// moment.
func intervalEdge(i Interval, t time.Time, end bool) time.Time {
	begin := i.begin(t)
	if end {
		return i.next(begin).Add(-time.Microsecond)
	}
	return begin
}
