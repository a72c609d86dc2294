package history_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestSeriesUseProjectTimeZone(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		// Far enough back for a year with both changes of the clocks.
		p := newPlace(t, d, func(p *place) { p.cfg.Days = 4000 })
		at := func(text string) time.Time {
			t.Helper()
			when, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return when
		}
		for _, when := range []string{
			"2026-03-28T22:59:59Z",                         // 23:59:59 on the 28th in Berlin
			"2026-03-28T23:00:00Z",                         // midnight of the 29th, which has 23 hours
			"2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", // 1:59:59 and 3:00
			"2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z", // the end of the 29th
			"2025-10-25T22:00:00Z", "2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z", "2025-10-26T22:59:59Z", // 25 hours
			"2026-03-01T18:15:00Z", // 0:00 on the 2nd in Kathmandu
		} {
			p.happened(at(when), "signup", "a", `{}`)
		}
		for _, c := range []struct {
			what, zone, from, to string
			interval             history.Interval
			first                string
			want                 []int64
		}{
			{"days, one of 23 hours", "Europe/Berlin", "2026-03-28T00:00:00+01:00", "2026-03-31T00:00:00+02:00", history.Day,
				"2026-03-28T00:00:00+01:00", []int64{1, 4, 1}},
			{"days, one of 25 hours", "Europe/Berlin", "2025-10-25T00:00:00+02:00", "2025-10-28T00:00:00+01:00", history.Day,
				"2025-10-25T00:00:00+02:00", []int64{0, 4, 0}},
			{"hours without the one that is left out", "Europe/Berlin", "2026-03-29T00:00:00+01:00", "2026-03-29T05:00:00+02:00", history.Hour,
				"2026-03-29T00:00:00+01:00", []int64{1, 1, 1, 0}},
			{"hours with the one that comes twice", "Europe/Berlin", "2025-10-26T01:00:00+02:00", "2025-10-26T04:00:00+01:00", history.Hour,
				"2025-10-26T01:00:00+02:00", []int64{0, 1, 1, 0}},
			{"weeks begin on Monday", "UTC", "2026-03-25T00:00:00Z", "2026-03-31T00:00:00Z", history.Week,
				"2026-03-23T00:00:00Z", []int64{6, 0}},
			{"months", "UTC", "2026-01-15T00:00:00Z", "2026-04-01T00:00:00Z", history.Month,
				"2026-01-01T00:00:00Z", []int64{0, 0, 7}},
			{"a zone that is off by a quarter of an hour", "Asia/Kathmandu", "2026-03-01T12:00:00+05:45", "2026-03-03T00:00:00+05:45", history.Day,
				"2026-03-01T00:00:00+05:45", []int64{0, 1}},
			{"parts of the first and the last interval", "UTC", "2026-03-28T22:59:59.5Z", "2026-03-29T21:59:59Z", history.Day,
				"2026-03-28T00:00:00Z", []int64{1, 2}},
		} {
			buckets, f, err := p.history.Series(t.Context(), action(1, actionmatch.Step{Event: "signup"}), zone(t, c.zone), at(c.from), at(c.to), c.interval)
			if err != nil || f.Calculating {
				t.Errorf("%s: %+v %v", c.what, f, err)
				continue
			}
			var got []int64
			for _, b := range buckets {
				got = append(got, b.Count)
			}
			if first := buckets[0].Start.Format(time.RFC3339); first != c.first || !equal(got, c.want) {
				t.Errorf("%s: %v from %s, want %v from %s", c.what, got, first, c.want, c.first)
			}
		}
	})
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestDayWithoutMidnight(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, func(p *place) { p.cfg.Days = 4000 })
		// In Beirut the clocks go from 0:00 to 1:00 on 29 March 2026.
		loc := zone(t, "Asia/Beirut")
		from := time.Date(2026, 3, 28, 0, 0, 0, 0, loc)
		buckets, _, err := p.history.Series(t.Context(), action(1, actionmatch.Step{Event: "signup"}), loc, from, from.Add(60*time.Hour), history.Day)
		if err != nil || len(buckets) != 3 {
			t.Fatalf("%v %v", buckets, err)
		}
		if got := buckets[1].Start.Format(time.RFC3339); got != "2026-03-29T01:00:00+03:00" {
			t.Errorf("the day begins at %s", got)
		}
		_, _, err = p.history.Series(t.Context(), action(1), loc, from.AddDate(-20, 0, 0), from, history.Hour)
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("the hours of twenty years: %v", err)
		}
	})
}
