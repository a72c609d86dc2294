package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

// Counts and persons are those of the events that are left, and only the days of
// deleted events are counted again.
func TestRetentionCorrectsCountsAndPersons(t *testing.T) {
	t.Parallel()
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
			4: action(4, actionmatch.Step{Event: "a", Properties: filterOn(`{"key":"even","type":"person","value":["true"]}`)}),
		}
		p.history.CorrectWith(actions)
		p.events.OnErase(p.history.Erased)
		p.events.OnExpire(p.history.Expired)
		from, r := today.AddDate(0, 0, -20), rand.New(rand.NewPCG(3, 5))
		var batch []*sdk.Event
		for range 3000 {
			who := r.IntN(30)
			batch = append(batch, p.event(today.Add(-time.Duration(r.IntN(19*24*60))*time.Minute-time.Second), []string{"a", "b", "c", "d"}[r.IntN(4)], fmt.Sprint("u", who),
				fmt.Sprintf(`{"n":%d,"$current_url":"https://shop.example/","$set":{"even":"%t"}}`, r.IntN(10), who%2 == 0)))
		}
		p.store(batch...)
		fresh := int64(1000)
		agrees := func(when string) {
			t.Helper()
			for id := int64(1); id <= 4; id++ {
				got := p.count(actions[id], from, today).Count
				fresh++
				if want := p.count(action(fresh, actions[id].Steps...), from, today).Count; got != want {
					t.Errorf("%s: action %d has %d events, counted from the beginning %d", when, id, got, want)
				}
			}
			q := history.PersonQuery{Steps: actions[2].Steps, Location: time.UTC, From: from, To: today}
			got := personIDs(t, p.history, q)
			again := history.New(p.cfg, d, p.past, p.persons, p.sources, zap.NewNop(), nil)
			defer func() { _ = again.Stop(t.Context()) }()
			if want := personIDs(t, again, q); !slices.Equal(got, want) {
				t.Errorf("%s: persons %v, from the beginning %v", when, got, want)
			}
		}
		agrees("first")
		expire := func(name string, before time.Time) {
			t.Helper()
			x := events.Expiry{ProjectID: 1, Event: name, Before: before}
			oldest, ok, err := p.events.Oldest(t.Context(), 1, name, time.Time{})
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			for n := -1; n != 0; {
				if n, err = p.events.DeleteExpired(t.Context(), x, 100); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.events.FinishExpiry(t.Context(), 1, oldest, before); err != nil {
				t.Fatal(err)
			}
		}
		expire("", today.AddDate(0, 0, -12))
		// The days since then are not counted again.
		watch.reset()
		if got, want := p.count(actions[1], today.AddDate(0, 0, -10), today).Count, countSince(batch, "a", today.AddDate(0, 0, -10)); got != want {
			t.Errorf("%d events since the limit, want %d", got, want)
		}
		if n := watch.reset(); n > 0 {
			t.Errorf("the history was read %d times for days after the limit", n)
		}
		agrees("all names")
		expire("a", today.AddDate(0, 0, -5))
		agrees("one name")
		if got := p.count(actions[1], from, today).Count; got != countSince(batch, "a", today.AddDate(0, 0, -5)) {
			t.Errorf("%d events named a are left", got)
		}
	})
}

func countSince(batch []*sdk.Event, name string, since time.Time) (n int64) {
	for _, ev := range batch {
		if ev.Name == name && !ev.Timestamp.Before(since) {
			n++
		}
	}
	return n
}
