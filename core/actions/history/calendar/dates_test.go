package calendar_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/actions/history/calendar"
	"github.com/guidonhq/guidon/core/fault"
)

func TestReadDate(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	at := time.Date(2026, 3, 31, 15, 4, 5, 0, berlin)
	for _, c := range []struct {
		what, text string
		end        bool
		want       string
	}{
		{"a date begins at midnight in the project's zone", "2026-01-02", false, "2026-01-02T00:00:00+01:00"},
		{"and ends with its last moment", "2026-01-02", true, "2026-01-02T23:59:59.999999+01:00"},
		{"a time without an offset", "2026-01-02T10:00:00", false, "2026-01-02T10:00:00+01:00"},
		{"a time with a space", "2026-01-02 10:00:00", true, "2026-01-02T10:00:00+01:00"},
		{"a time in UTC", "2026-01-02T10:00:00Z", false, "2026-01-02T10:00:00Z"},
		{"a plus sign that became a space", "2026-01-02T10:00:00 02:00", false, "2026-01-02T10:00:00+02:00"},
		{"days ago, whole", "-7d", false, "2026-03-24T00:00:00+01:00"},
		{"days ago, to their end", "-1d", true, "2026-03-30T23:59:59.999999+02:00"},
		{"the day the clocks went forward", "-2d", false, "2026-03-29T00:00:00+01:00"},
		{"hours ago, exactly", "-24h", false, "2026-03-30T15:04:05+02:00"},
		{"weeks ago", "-2w", false, "2026-03-17T00:00:00+01:00"},
		{"a month ago that is shorter", "-1m", false, "2026-02-28T00:00:00+01:00"},
		{"a quarter ago", "-1q", false, "2025-12-31T00:00:00+01:00"},
		{"a year ago", "-1y", false, "2025-03-31T00:00:00+02:00"},
		{"the beginning of this month", "mStart", false, "2026-03-01T00:00:00+01:00"},
		{"the beginning of the month before", "-1mStart", false, "2026-02-01T00:00:00+01:00"},
		{"its end", "-1mEnd", true, "2026-02-28T23:59:59.999999+01:00"},
		{"the beginning of this year", "yStart", false, "2026-01-01T00:00:00+01:00"},
		{"today", "dStart", false, "2026-03-31T00:00:00+02:00"},
		{"now", "now", true, "2026-03-31T15:04:05+02:00"},
	} {
		got, err := calendar.ReadDate(c.text, at, c.end)
		if text := got.Format(time.RFC3339Nano); err != nil || text != c.want {
			t.Errorf("%s: %s %v, want %s", c.what, text, err, c.want)
		}
	}
	if got, err := calendar.ReadDate("all", at, false); err != nil || !got.IsZero() {
		t.Errorf("all: %s %v", got, err)
	}
	for _, text := range []string{"yesterday", "-7", "7dd", "2026-13-01", "--7d", "-7D", "2026-02-30"} {
		if got, err := calendar.ReadDate(text, at, false); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %s %v", text, got, err)
		}
	}
}

func FuzzReadDate(f *testing.F) {
	for _, seed := range []string{"-7d", "all", "2026-01-02", "-1mStart", "99999y", "-99999hEnd", "2026-01-02T10:00:00 02:00"} {
		f.Add(seed)
	}
	at := time.Date(2026, 3, 31, 15, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		begin, err := calendar.ReadDate(text, at, false)
		if err != nil {
			return
		}
		if end, err := calendar.ReadDate(text, at, true); err != nil || end.Before(begin) {
			t.Errorf("%q ends at %s %v, before %s", text, end, err, begin)
		}
	})
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}
