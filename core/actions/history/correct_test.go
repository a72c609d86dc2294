package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// scans counts the queries that read old rows of more than a quarter of an hour.
type scans struct {
	history.EventHistory

	mu   sync.Mutex
	long int
}

func (s *scans) note(q *events.HistoryQuery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.After == 0 && (q.From.IsZero() || q.To.Sub(q.From) > 15*time.Minute) {
		s.long++
	}
}

func (s *scans) reset() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, s.long = s.long, 0
	return n
}

func (s *scans) CountHistory(ctx context.Context, q *events.HistoryQuery, width time.Duration) (events.HistoryCounts, error) {
	s.note(q)
	return s.EventHistory.CountHistory(ctx, q, width)
}

func (s *scans) DistinctIDs(ctx context.Context, q *events.HistoryQuery) (map[string]struct{}, bool, error) {
	s.note(q)
	return s.EventHistory.DistinctIDs(ctx, q)
}

func (s *scans) ScanHistory(ctx context.Context, q *events.HistoryQuery, fn func(*events.HistoryEvent) error) error {
	s.note(q)
	return s.EventHistory.ScanHistory(ctx, q, fn)
}

// definitions are the actions of a test by their id.
type definitions map[int64]*history.Definition

func (d definitions) Definition(_ context.Context, _, id int64) (history.Definition, error) {
	if a := d[id]; a != nil {
		return *a, nil
	}
	return history.Definition{}, fault.New(fault.NotFound, "not_found", "Not found.")
}

func (d definitions) Location(context.Context, int64) *time.Location { return time.UTC }

func filterOn(text string) []json.RawMessage { return []json.RawMessage{json.RawMessage(text)} }

// TestErasureCorrectsCounts compares the counts and persons of actions with a count
// from the beginning, after random events and erasures. The counts that events
// alone decide are corrected without reading the history.
func TestErasureCorrectsCounts(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		watch := &scans{}
		p := newPlace(t, d, func(p *place) {
			watch.EventHistory, p.past = p.past, watch
			p.cfg.Refresh = time.Hour
		})
		actions := definitions{
			1: action(1, actionmatch.Step{Event: "a"}),
			2: action(2, actionmatch.Step{Event: "b", Properties: filterOn(`{"key":"n","operator":"gt","value":5}`)}),
			3: action(3, actionmatch.Step{URL: "shop"}, actionmatch.Step{Event: "c"}),
			4: action(4, actionmatch.Step{Event: "a", URL: "^https://shop", URLMatching: "regex"}),
			// The facts of erased persons are gone: counted again.
			5: action(5, actionmatch.Step{Event: "a", Properties: filterOn(`{"key":"even","type":"person","value":["true"]}`)}),
		}
		p.history.CorrectWith(actions)
		p.events.OnErase(p.history.Erased)
		from, r := today.AddDate(0, 0, -20), rand.New(rand.NewPCG(3, 5))
		fresh := int64(1000)
		agrees := func(when string) {
			t.Helper()
			for id := int64(1); id <= 5; id++ {
				watch.reset()
				got := p.count(actions[id], from, today).Count
				if n := watch.reset(); n > 0 && id < 5 && when != "first" {
					t.Errorf("%s: action %d read the history %d times", when, id, n)
				}
				fresh++
				if want := p.count(action(fresh, actions[id].Steps...), from, today).Count; got != want {
					t.Errorf("%s: action %d has %d events, counted from the beginning %d", when, id, got, want)
				}
			}
			q := history.PersonQuery{Steps: actions[2].Steps, Location: time.UTC, From: from, To: today}
			watch.reset()
			got := personIDs(t, p.history, q)
			if n := watch.reset(); n > 0 && when != "first" {
				t.Errorf("%s: the persons of action 2 read the history %d times", when, n)
			}
			again := history.New(p.cfg, d, p.past, p.persons, p.sources, zap.NewNop(), nil)
			defer func() { _ = again.Stop(context.Background()) }()
			if want := personIDs(t, again, q); !slices.Equal(got, want) {
				t.Errorf("%s: persons %v, from the beginning %v", when, got, want)
			}
		}
		add := func(n int) {
			var batch []*sdk.Event
			for range n {
				who := r.IntN(30)
				url := []string{"https://shop.example/1", "https://blog.example/", ""}[r.IntN(3)]
				batch = append(batch, p.event(today.Add(-time.Duration(r.IntN(19*24*60))*time.Minute-time.Second), []string{"a", "b", "c", "d"}[r.IntN(4)], fmt.Sprint("u", who),
					fmt.Sprintf(`{"n":%d,"$current_url":%q,"$set":{"even":"%t"}}`, r.IntN(10), url, who%2 == 0)))
			}
			p.store(batch...)
		}
		add(400)
		agrees("first")
		for round := range 12 {
			who := fmt.Sprint("u", r.IntN(30))
			if r.IntN(2) == 0 {
				add(r.IntN(20)) // not counted yet
			}
			if found := p.findPerson(who); found != "" {
				if err := p.persons.Delete(t.Context(), 1, found, true); err != nil {
					t.Fatal(err)
				}
			}
			if r.IntN(3) == 0 {
				add(r.IntN(20))
			}
			agrees(fmt.Sprint("round ", round, " without ", who))
		}
	})
}

func (p *place) findPerson(distinctID string) string {
	p.t.Helper()
	found, ok, err := p.persons.ByDistinctID(p.t.Context(), 1, distinctID)
	if err != nil {
		p.t.Fatal(err)
	}
	if !ok {
		return ""
	}
	return found.UUID
}

func personIDs(t *testing.T, h *history.Service, q history.PersonQuery) (ids []int64) {
	t.Helper()
	page, err := h.Persons(t.Context(), 1, q, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Persons {
		ids = append(ids, page.Persons[i].ID)
	}
	return ids
}

// TestErasureDuringCount erases a person between the queries of a count. The run
// starts again from the corrected counts, or the next one counts again.
func TestErasureDuringCount(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		hook := &onCount{}
		p := newPlace(t, d, func(p *place) { hook.EventHistory, p.past = p.past, hook })
		a := action(1, actionmatch.Step{Event: "a"})
		p.history.CorrectWith(definitions{1: a})
		p.events.OnErase(p.history.Erased)
		for i := range 40 {
			p.happened(today.AddDate(0, 0, -i-1), "a", fmt.Sprint("u", i%4), `{}`)
		}
		from := today.AddDate(0, 0, -60)
		for i, want := range []int64{30, 20} {
			hook.then(func() {
				if err := p.persons.Delete(t.Context(), 1, p.personOf(fmt.Sprint("u", i)), true); err != nil {
					t.Error(err)
				}
			})
			p.happened(today.AddDate(0, 0, -1), "other", "x", `{}`)
			p.count(a, from, today)
			if f := p.count(a, from, today); f.Count != want {
				t.Errorf("%+v, want %d", f, want)
			}
		}
	})
}

// onCount calls a function once, after the next query.
type onCount struct {
	history.EventHistory

	mu sync.Mutex
	fn func()
}

func (o *onCount) then(fn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fn = fn
}

func (o *onCount) CountHistory(ctx context.Context, q *events.HistoryQuery, width time.Duration) (events.HistoryCounts, error) {
	counts, err := o.EventHistory.CountHistory(ctx, q, width)
	o.mu.Lock()
	fn := o.fn
	o.fn = nil
	o.mu.Unlock()
	if fn != nil {
		fn()
	}
	return counts, err
}
