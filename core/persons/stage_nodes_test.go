package persons_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// node runs batches as a worker does: a transaction each, again when the
// database asks for it.
func node(ctx context.Context, d *db.DB, s *persons.Service, batches [][]*sdk.Event) error {
	for i, batch := range batches {
		for attempt := 0; ; attempt++ {
			_, err := s.Process(ctx, batch)
			if err == nil {
				break
			}
			if !db.Retryable(err) || attempt > 50 {
				return fmt.Errorf("batch %d: %w", i, err)
			}
		}
	}
	return nil
}

// together runs one node a list of batches, all at once.
func together(t *testing.T, d *db.DB, lists ...[][]*sdk.Event) *persons.Service {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(lists))
	for i, batches := range lists {
		s := service(t, d)
		wg.Go(func() { errs[i] = node(t.Context(), d, s, batches) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return service(t, d)
}

func single(lines ...string) (out [][]*sdk.Event) {
	for _, line := range lines {
		out = append(out, evs(line))
	}
	return out
}

func TestTwoNodesMergeInOppositeDirections(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		for round := range 20 {
			a, b := fmt.Sprintf("a%d", round), fmt.Sprintf("b%d", round)
			process(t, service(t, d), evs(`$set `+a+` {"$set":{"a":1}}`, `$set `+b+` {"$set":{"b":1}}`))
			s := together(t, d,
				single(`$merge_dangerously `+a+` {"alias":"`+b+`"}`),
				single(`$merge_dangerously `+b+` {"alias":"`+a+`"}`))
			pa, _, err := s.ByDistinctID(t.Context(), 1, a)
			if err != nil {
				t.Fatal(err)
			}
			pb, _, err := s.ByDistinctID(t.Context(), 1, b)
			if err != nil {
				t.Fatal(err)
			}
			if pa.ID != pb.ID || pa.ID == 0 || len(pa.DistinctIDs) != 2 || plain(t, pa.Properties) != `{"a":1,"b":1}` {
				t.Fatalf("round %d: %+v and %+v", round, pa, pb)
			}
		}
	})
}

func TestTwoNodesCreateTheSamePerson(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		for round := range 20 {
			who := fmt.Sprintf("u%d", round)
			s := together(t, d, single(`$set `+who+` {"$set":{"a":1}}`), single(`$set `+who+` {"$set":{"b":1}}`))
			p, _, err := s.ByDistinctID(t.Context(), 1, who)
			if err != nil || plain(t, p.Properties) != `{"a":1,"b":1}` {
				t.Fatalf("round %d: %s %v: an update is lost", round, p.Properties, err)
			}
		}
	})
}

func TestTwoNodesLoseNoUpdate(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		process(t, service(t, d), evs(`$identify u {"$anon_distinct_id":"v"}`,
			`$groupidentify u {"$group_type":"company","$group_key":"acme"}`))
		var lists [2][][]*sdk.Event
		for i, who := range []string{"u", "v"} {
			for n := range 15 {
				key := fmt.Sprintf("%s%d", who, n)
				lists[i] = append(lists[i], evs(
					`$set `+who+` {"$set":{"`+key+`":1}}`,
					`$groupidentify `+who+` {"$group_type":"company","$group_key":"acme","$group_set":{"`+key+`":1}}`))
			}
		}
		s := together(t, d, lists[:]...)
		p, _, err := s.ByDistinctID(t.Context(), 1, "u")
		if err != nil || strings.Count(string(p.Properties), ":1") != 30 {
			t.Fatalf("30 properties were set, the person has %s (%v)", p.Properties, err)
		}
		g, _, err := s.GroupProperties(t.Context(), 1, "company", "acme")
		if err != nil || strings.Count(string(g), ":1") != 30 {
			t.Fatalf("30 properties were set, the group has %s (%v)", g, err)
		}
	})
}

func TestTwoNodesGiveEachGroupTypeItsSlot(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := together(t, d,
			single(`x u1 {"$groups":{"a":"1"}}`, `x u1 {"$groups":{"b":"1"}}`),
			single(`x u2 {"$groups":{"c":"1"}}`, `x u2 {"$groups":{"a":"1"}}`))
		types, err := s.GroupTypes(t.Context(), 1)
		seen := map[int]bool{}
		for _, slot := range types {
			seen[slot] = true
		}
		if err != nil || len(types) != 3 || len(seen) != 3 {
			t.Fatalf("types %v, %v", types, err)
		}
	})
}

// Whatever two nodes do at once, in the end each distinct id has one person,
// each person has a distinct id, and ids that were merged are together.
func TestTwoNodesRandomBatches(t *testing.T) {
	const ids = 12
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		rnd := rand.New(rand.NewPCG(3, 4))
		id := func() string { return fmt.Sprintf("u%d", rnd.IntN(ids)) }
		group := make([]int, ids) // union-find, slow and simple
		for i := range group {
			group[i] = i
		}
		join := func(x, y string) {
			var a, b int
			fmt.Sscan(x[1:], &a)
			fmt.Sscan(y[1:], &b)
			from, into := group[a], group[b]
			for i := range group {
				if group[i] == from {
					group[i] = into
				}
			}
		}
		touched := map[string]bool{}
		var lists [2][][]*sdk.Event
		for i := range lists {
			for range 15 {
				var lines []string
				for range 4 {
					x, y := id(), id()
					touched[x] = true
					switch rnd.IntN(6) {
					case 0:
						lines = append(lines, `$merge_dangerously `+x+` {"alias":"`+y+`"}`)
						touched[y] = true
						join(x, y)
					default:
						lines = append(lines, `$set `+x+` {"$set":{"n":`+fmt.Sprint(rnd.IntN(9))+`}}`)
					}
				}
				lists[i] = append(lists[i], evs(lines...))
			}
		}
		s := together(t, d, lists[:]...)
		owner := map[string]int64{}
		err := s.Walk(t.Context(), 1, func(page []persons.Person) error {
			for _, p := range page {
				if len(p.DistinctIDs) == 0 {
					t.Errorf("person %d has no distinct id", p.ID)
				}
				for _, id := range p.DistinctIDs {
					owner[id] = p.ID
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for x := range touched {
			for y := range touched {
				var a, b int
				fmt.Sscan(x[1:], &a)
				fmt.Sscan(y[1:], &b)
				if owner[x] == 0 || (owner[x] == owner[y]) != (group[a] == group[b]) {
					t.Fatalf("%s is of person %d and %s of %d; merged: %v", x, owner[x], y, owner[y], group[a] == group[b])
				}
			}
		}
	})
}
