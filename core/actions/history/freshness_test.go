package history_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/match"
)

// TestSeriesOfAnyLength checks that a series reaches back to the first event, with
// buckets of any width.
func TestSeriesOfAnyLength(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, nil)
		a := action(1, actionmatch.Step{Event: "signup"})
		years := []int{0, 2, 5, 12}
		for _, n := range years {
			p.happened(today.AddDate(-n, 0, 0).Add(-time.Hour), "signup", "a", `{}`)
		}
		if f := p.count(a, today.AddDate(0, -3, 0), today); f.Count != 1 {
			t.Errorf("three months: %+v", f)
		}
		for from, want := range map[time.Time]int64{today.AddDate(-3, 0, 0): 2, today.AddDate(-30, 0, 0): 4, {}: 4} {
			for _, width := range []history.Interval{history.Week, history.Month, history.Year} {
				buckets, f, err := p.history.Series(t.Context(), a, time.UTC, from, today, width)
				if err != nil || f.Count != want || f.Calculating {
					t.Errorf("%ss since %s: %+v, %v, want %d", width, from, f, err, want)
				}
				var sum int64
				for _, b := range buckets {
					sum += b.Count
				}
				if sum != want {
					t.Errorf("the %ss since %s have %d events, want %d", width, from, sum, want)
				}
			}
			if f := p.count(a, from, today); f.Count != want {
				t.Errorf("count since %s: %+v, want %d", from, f, want)
			}
		}
	})
}

// TestCountAgreesWithPersons checks that a count and the persons of an action with
// a person filter follow a changed property, although the refresh interval is long.
func TestCountAgreesWithPersons(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, func(p *place) { p.cfg.Refresh = time.Hour })
		step := actionmatch.Step{Event: "buy", Properties: filterOn(`{"key":"plan","type":"person","value":"pro"}`)}
		a := action(1, step)
		p.happened(today.Add(-time.Hour), "buy", "a", `{"$set":{"plan":"pro"}}`)
		persons := func() int {
			page, err := p.history.Persons(t.Context(), 1, history.PersonQuery{Steps: a.Steps, Location: time.UTC}, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			return len(page.Persons)
		}
		if f := p.count(a, today.AddDate(0, -3, 0), today); f.Count != 1 || !f.Ages || persons() != 1 {
			t.Fatalf("before: %+v and %d persons", f, persons())
		}
		p.happened(today, "other", "a", `{"$set":{"plan":"free"}}`)
		waitFor(t, "the count to follow", func() bool { return p.count(a, today.AddDate(0, -3, 0), today).Count == 0 })
		waitFor(t, "the persons to follow", func() bool { return persons() == 0 })
	})
}

// switchable is a static cohort that contains all persons or none.
type switchable struct {
	revision atomic.Int64
	empty    atomic.Bool
}

func (s *switchable) Of(context.Context, int64) (int64, error) { return s.revision.Load(), nil }

func (s *switchable) InCohort(context.Context, int64, int64, string) (match.Result, error) {
	if s.empty.Load() {
		return match.False, nil
	}
	return match.True, nil
}

// TestCohortChangeInvalidatesCounts checks that the first request after a change of
// a cohort counts again.
func TestCohortChangeInvalidatesCounts(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		cohort := &switchable{}
		p := newPlace(t, d, func(p *place) { p.sources.Members, p.cfg.Refresh = cohort, time.Hour })
		p.history.FollowCohorts(cohort)
		a := action(1, actionmatch.Step{Event: "buy", Properties: filterOn(`{"key":"id","type":"cohort","value":3}`)})
		p.happened(today.Add(-time.Hour), "buy", "a", `{}`)
		if f := p.count(a, today.AddDate(0, -3, 0), today); f.Count != 1 {
			t.Fatalf("before: %+v", f)
		}
		cohort.empty.Store(true)
		cohort.revision.Add(1)
		if f := p.count(a, today.AddDate(0, -3, 0), today); f.Count != 0 {
			t.Errorf("after the change: %+v, want 0", f)
		}
		page, err := p.history.Persons(t.Context(), 1, history.PersonQuery{Steps: a.Steps, Location: time.UTC}, 0, 10)
		if err != nil || len(page.Persons) != 0 {
			t.Errorf("persons after the change: %v, %v", page, err)
		}
	})
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
