package match

import (
	"time"

	"github.com/valyala/fastjson"
)

// compileDate compares instants. The filter value is a date or a relative date
// ("30d", "-2w"); the property is a date or seconds since 1970.
func compileDate(holds func(t, than time.Time) bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		location := o.location
		if ago, ok := parseAgo(loose(&o.value)); ok && o.value.kind != Bool {
			return func(v *Value, now time.Time) bool {
				t, ok := instant(v, location)
				return ok && holds(t, ago.before(now))
			}, nil
		}
		than, ok := instant(&o.value, location)
		if !ok {
			return never, o.problem("invalid_date", "it must be a date, or how long ago such as 30d")
		}
		return func(v *Value, _ time.Time) bool {
			t, ok := instant(v, location)
			return ok && holds(t, than)
		}, nil
	}
}

// Instant returns the point in time that a date operator compares with, given the
// JSON text of its value. It returns false for a relative date and for no date. A
// date without an offset is in UTC.
func Instant(value []byte) (time.Time, bool) {
	parsed, err := fastjson.ParseBytes(value)
	if err != nil {
		return time.Time{}, false
	}
	v, _ := FromJSON(parsed, nil)
	if _, relative := parseAgo(loose(&v)); relative {
		return time.Time{}, false
	}
	return instant(&v, time.UTC)
}

// ago is a relative date: a number of hours, days, weeks, months or years back.
type ago struct {
	count int
	unit  byte
}

func parseAgo(s string) (ago, bool) {
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	n := digits(s, 0)
	if n == 0 || n != len(s)-1 {
		return ago{}, false
	}
	count := 0
	for i := range n {
		if count = count*10 + int(s[i]-'0'); count >= 10000 {
			return ago{}, false
		}
	}
	switch unit := s[n]; unit {
	case 'h', 'd', 'w', 'm', 'y':
		return ago{count, unit}, true
	}
	return ago{}, false
}

// before returns the instant a before now in the UTC calendar. Months are
// subtracted one by one, and a day beyond the end of a month becomes its last
// day: a 31st becomes a 28th after February.
func (a ago) before(now time.Time) time.Time {
	now = now.UTC()
	year, month, day := now.Date()
	switch a.unit {
	case 'h':
		return now.Add(-time.Duration(a.count) * time.Hour)
	case 'd':
		return now.AddDate(0, 0, -a.count)
	case 'w':
		return now.AddDate(0, 0, -7*a.count)
	case 'm':
		for step := 1; step <= a.count && day > 28; step++ {
			last := time.Date(year, month-time.Month(step)+1, 0, 0, 0, 0, 0, time.UTC).Day()
			day = min(day, last)
		}
		month -= time.Month(a.count)
	case 'y':
		if a.count > 0 && month == time.February && day == 29 {
			day = 28
		}
		year -= a.count
	}
	return time.Date(year, month, day, now.Hour(), now.Minute(), now.Second(), now.Nanosecond(), time.UTC)
}
