package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

// naiveEvent is a stored event with its person, 0 without one.
type naiveEvent struct {
	Event, DistinctID, Properties string
	Timestamp                     int64
	PersonID                      int64
}

// naiveEvents reads all events of project 1.
func (p *place) naiveEvents() (list []naiveEvent) {
	p.t.Helper()
	plain := "e.properties"
	if !p.db.Postgres() {
		plain = `event_properties(e.properties, (SELECT c.content FROM event_dictionaries AS c
			WHERE c.id = event_dictionary_id(e.properties)), e.distinct_id, e.current_url)`
	}
	err := p.db.Read(p.t.Context()).NewSelect().TableExpr("events AS e").
		ColumnExpr("e.event, e.distinct_id, ? AS properties, e.timestamp, coalesce(d.person_id, 0) AS person_id", bun.Safe(plain)).
		Join("LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id").
		Where("e.project_id = 1").Scan(p.t.Context(), &list)
	if err != nil {
		p.t.Fatal(err)
	}
	return list
}

// naiveFit decides by hand whether an event fits an action of randomActions.
func naiveFit(id int64, e *naiveEvent) bool {
	var properties struct {
		N   *int   `json:"n"`
		URL string `json:"$current_url"`
	}
	_ = json.Unmarshal([]byte(e.Properties), &properties)
	switch id {
	case 1:
		return e.Event == "a"
	case 2:
		return e.Event == "b" && properties.N != nil && *properties.N > 5
	case 3:
		return strings.Contains(properties.URL, "shop") || e.Event == "c"
	default:
		return e.Event == "a" && strings.HasPrefix(properties.URL, "https://shop")
	}
}

func randomActions() definitions {
	return definitions{
		1: action(1, actionmatch.Step{Event: "a"}),
		2: action(2, actionmatch.Step{Event: "b", Properties: filterOn(`{"key":"n","operator":"gt","value":5}`)}),
		3: action(3, actionmatch.Step{URL: "shop"}, actionmatch.Step{Event: "c"}),
		4: action(4, actionmatch.Step{Event: "a", URL: "^https://shop", URLMatching: "regex"}),
	}
}

// randomChange stores events, merges or deletes persons, or ends events by age.
type randomChange struct {
	*place
	r    *rand.Rand
	gone map[string]bool // deleted without their events; see personSetTTL
}

func (c *randomChange) id() string {
	for {
		if id := fmt.Sprint("u", c.r.IntN(60)); !c.gone[id] {
			return id
		}
	}
}

// at returns a time of the last 19 days: often the same one, or the first or last
// moment of a day or a quarter of an hour.
func (c *randomChange) at() time.Time {
	day := today.Truncate(24*time.Hour).AddDate(0, 0, -c.r.IntN(19)-1)
	switch c.r.IntN(5) {
	case 0:
		return day
	case 1:
		return day.Add(24*time.Hour - time.Microsecond)
	case 2:
		return day.Add(time.Duration(c.r.IntN(96)) * 15 * time.Minute)
	default:
		return day.Add(time.Duration(c.r.Int64N(int64(24 * time.Hour)))).Truncate(time.Microsecond)
	}
}

func (c *randomChange) add(n int) {
	var batch []*sdk.Event
	for range n {
		long := strings.Repeat("x", []int{0, 0, 0, 2000}[c.r.IntN(4)])
		properties := []string{
			fmt.Sprintf(`{"n":%d,"$current_url":"https://shop.example/%s"}`, c.r.IntN(10), long),
			fmt.Sprintf(`{"n":%d,"$current_url":"https://blog.example/%sshop"}`, c.r.IntN(10), long),
			`{"n":null}`, `{}`, fmt.Sprintf(`{"$set":{"x":%d},"n":7}`, c.r.IntN(3)),
		}[c.r.IntN(5)]
		batch = append(batch, c.event(c.at(), []string{"a", "b", "c", "d"}[c.r.IntN(4)], c.id(), properties))
	}
	c.store(batch...)
}

func (c *randomChange) step() {
	c.t.Helper()
	switch c.r.IntN(8) {
	case 0, 1, 2:
		c.add(1 + c.r.IntN(30))
	case 3, 4:
		c.happened(c.at(), "$merge_dangerously", c.id(), fmt.Sprintf(`{"alias":%q}`, c.id()))
	case 5:
		if found := c.findPerson(c.id()); found != "" {
			if err := c.persons.Delete(c.t.Context(), 1, found, true); err != nil {
				c.t.Fatal(err)
			}
		}
	case 6:
		found, ok, err := c.persons.ByDistinctID(c.t.Context(), 1, c.id())
		if err != nil {
			c.t.Fatal(err)
		}
		if !ok || len(c.gone) > 15 {
			return
		}
		for _, id := range found.DistinctIDs {
			c.gone[id] = true
		}
		if err := c.persons.Delete(c.t.Context(), 1, found.UUID, false); err != nil {
			c.t.Fatal(err)
		}
	case 7:
		c.expire()
	}
}

func (c *randomChange) expire() {
	c.t.Helper()
	x := events.Expiry{ProjectID: 1, Event: []string{"", "a", "d"}[c.r.IntN(3)], Before: c.at().AddDate(0, 0, -9)}
	oldest, ok, err := c.events.Oldest(c.t.Context(), 1, x.Event, time.Time{})
	if err != nil {
		c.t.Fatal(err)
	}
	if !ok || !oldest.Before(x.Before) {
		return
	}
	for n := -1; n != 0; {
		if n, err = c.events.DeleteExpired(c.t.Context(), x, 50); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.events.FinishExpiry(c.t.Context(), 1, oldest, x.Before); err != nil {
		c.t.Fatal(err)
	}
}

// TestHistoryEqualsTheEvents compares counts and persons with a look at every stored
// event, after random events, merges, deletions and ends by age. Requests run beside
// the changes, so that searches and counts meet them in the middle.
func TestHistoryEqualsTheEvents(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, nil)
		actions := randomActions()
		p.history.CorrectWith(actions)
		p.events.OnErase(func(ctx context.Context, e *events.Erased) error { return p.history.Erased(ctx, e) })
		p.events.OnExpire(func(ctx context.Context, e *events.Expired) error { return p.history.Expired(ctx, e) })
		c := &randomChange{p, rand.New(rand.NewPCG(11, seed)), map[string]bool{}}
		c.add(events.MinCompressed) // text
		if trained, err := p.events.Train(t.Context(), 1); err != nil || trained == d.Postgres() {
			t.Fatal(trained, err)
		}
		c.add(300) // compressed on SQLite
		for round := range rounds {
			var beside sync.WaitGroup
			for id := range actions {
				beside.Go(func() {
					_, _ = p.history.Count(t.Context(), actions[id], time.UTC, today.AddDate(0, 0, -20), today)
					_, _ = p.history.Persons(t.Context(), 1, history.PersonQuery{Steps: actions[id].Steps, Location: time.UTC}, 0, 1000)
				})
			}
			for range c.r.IntN(4) {
				c.step()
			}
			beside.Wait()
			list := p.naiveEvents()
			for id := range actions {
				p.compareNaive(fmt.Sprint("round ", round), actions[id], list, today.AddDate(0, 0, -20), today)
				from := c.at()
				p.compareNaive(fmt.Sprint("round ", round), actions[id], list, from, from.Add(time.Duration(c.r.Int64N(int64(72*time.Hour)))))
			}
			if t.Failed() {
				return
			}
		}
	})
}

const seed, rounds = 7, 12

// compareNaive compares the count and the persons of an action with those of a list.
func (p *place) compareNaive(when string, a *history.Definition, list []naiveEvent, from, to time.Time) {
	p.t.Helper()
	var want int64
	people, all := map[int64]bool{}, map[int64]bool{}
	for i := range list {
		e := &list[i]
		if !naiveFit(a.ID, e) {
			continue
		}
		all[e.PersonID] = true
		if at := time.UnixMicro(e.Timestamp); !at.Before(from) && at.Before(to) {
			want++
			people[e.PersonID] = true
		}
	}
	if got := p.count(a, from, to); got.Count != want {
		p.t.Errorf("%s: action %d from %v to %v: %d events, want %d", when, a.ID, from, to, got.Count, want)
	}
	for i, want := range []map[int64]bool{people, all} {
		q := history.PersonQuery{Steps: a.Steps, Location: time.UTC}
		if i == 0 {
			q.From, q.To = from, to
		}
		page, err := p.history.Persons(p.t.Context(), 1, q, 0, 1000)
		if err != nil {
			p.t.Fatal(err)
		}
		var got []int64
		for i := range page.Persons {
			got = append(got, page.Persons[i].ID)
		}
		delete(want, 0)
		sorted := make([]int64, 0, len(want))
		for id := range want {
			sorted = append(sorted, id)
		}
		slices.Sort(sorted)
		if !slices.Equal(got, sorted) {
			p.t.Errorf("%s: action %d from %v to %v: persons %v, want %v", when, a.ID, q.From, q.To, got, sorted)
		}
	}
}
