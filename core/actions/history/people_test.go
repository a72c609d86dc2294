package history_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
)

// slowScan is an event store whose scans of events wait for a token.
type slowScan struct {
	history.EventHistory
	gate chan struct{} // one scan a token; closed: all
}

func (g *slowScan) ScanHistory(ctx context.Context, q *events.HistoryQuery, fn func(*events.HistoryEvent) error) error {
	select {
	case <-g.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.EventHistory.ScanHistory(ctx, q, fn)
}

// urlQuery is a search that reads events.
func urlQuery(days int) history.PersonQuery {
	return history.PersonQuery{
		Steps: []actionmatch.Step{{Event: "view", URL: "/a/[0-9]+", URLMatching: "regex"}}, Location: time.UTC,
		From: today.AddDate(0, 0, -days),
	}
}

func TestPeopleAnswerWhileSearching(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		slow := &slowScan{gate: make(chan struct{})}
		p := newPlace(t, d, func(p *place) {
			p.cfg.MaxWait, p.cfg.Readers = time.Millisecond, 1
			slow.EventHistory, p.past = p.past, slow
		})
		p.happened(today.Add(-time.Hour), "view", "new", `{"$current_url":"/a/1"}`)
		p.happened(today.AddDate(0, 0, -5), "view", "old", `{"$current_url":"/a/2"}`)
		ask := func() history.PersonPage {
			page, err := p.history.Persons(t.Context(), 1, urlQuery(6), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		if page := ask(); len(page.Persons) != 0 || !page.Calculating || page.Progress.Done != 0 {
			t.Errorf("before anything is read: %+v", page)
		}
		slow.gate <- struct{}{} // the newest day
		slow.gate <- struct{}{}
		until(t, "the person of the newest days", func() bool { return len(ask().Persons) == 1 })
		if page := ask(); !page.Calculating || page.Progress.Done <= 0 || page.Progress.Done >= 1 || page.Progress.Remaining <= 0 {
			t.Errorf("in the middle: %+v", page)
		}
		close(slow.gate)
		until(t, "all persons", func() bool { page := ask(); return len(page.Persons) == 2 && !page.Calculating })
	})
}

// TestMergesCorrectPeople merges persons while a search runs and after it. Neither
// makes the next request read the history.
func TestMergesCorrectPeople(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		slow := &slowScan{gate: make(chan struct{})}
		scans := &scans{}
		p := newPlace(t, d, func(p *place) {
			p.cfg.MaxWait = time.Millisecond
			slow.EventHistory = p.past
			scans.EventHistory = slow
			p.past = scans
		})
		p.events.OnErase(func(ctx context.Context, e *events.Erased) error { return p.history.Erased(ctx, e) })
		for i := range 4 {
			p.happened(today.Add(-time.Hour), "view", fmt.Sprint("u", i), `{"$current_url":"/a/1"}`)
		}
		p.happened(today.Add(-time.Hour), "other", "late", `{}`)
		ask := func() []string {
			page, err := p.history.Persons(t.Context(), 1, urlQuery(3), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			if page.Calculating {
				return nil
			}
			out := []string{}
			for _, person := range page.Persons {
				out = append(out, fmt.Sprint(person.DistinctIDs))
			}
			return out
		}
		merge := func(into, from string) {
			p.happened(today.Add(-time.Minute), "$merge_dangerously", into, fmt.Sprintf(`{"alias":%q}`, from))
		}
		ask()
		merge("late", "u0") // while the search runs: the person of u0 ends
		close(slow.gate)
		until(t, "four persons after the first merge", func() bool { return len(ask()) == 4 })
		scans.reset()
		merge("u1", "u2")
		until(t, "three persons after the second merge", func() bool { return len(ask()) == 3 })
		if n := scans.reset(); n != 0 {
			t.Errorf("%d scans of the history after a merge", n)
		}
	})
}
