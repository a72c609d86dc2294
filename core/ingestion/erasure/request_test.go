package erasure

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
)

// A client that repeats a deletion makes no second erasure, unless the first has begun.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "repeated/0"}
		removed := &fakePersons{}
		s := newOwner(d, l, removed, cursorAt(0), 5).Service
		request := func(events bool, ids ...string) persons.Removal {
			return persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: ids, Events: events}
		}
		var requests errgroup.Group
		erase := func(r persons.Removal, erasures, waiting int) {
			t.Helper()
			requests.Go(func() error { return s.Erase(t.Context(), r) })
			waitFor(t, func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				n := 0
				for _, all := range s.waiting {
					n += len(all)
				}
				return len(s.waiting) == erasures && n == waiting
			})
		}
		erase(request(true, "u", "v"), 1, 1)
		waitFor(t, func() bool { return len(openErasures(t, s)) == 1 })
		first := openErasures(t, s)[0]
		erase(request(true, "u"), 1, 2)
		erase(request(false, "v", "u"), 1, 3)
		erase(request(true, "u", "w"), 2, 4)                            // another distinct id
		waitFor(t, func() bool { return len(openErasures(t, s)) == 2 }) // requests wait before they commit
		if all := openErasures(t, s); len(all) != 2 || !all[0].RequestedAt.After(first.RequestedAt) {
			t.Errorf("open: %+v, at first %+v", all, first)
		}
		if err := s.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.markBegun(t.Context(), s.journalID(), []*Erasure{&first}); err != nil {
			t.Fatal(err)
		}
		erase(request(true, "u", "v"), 3, 5)
		waitFor(t, func() bool { return len(openErasures(t, s)) == 3 })
		if err := s.processOpen(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := requests.Wait(); err != nil {
			t.Error(err)
		}
		if len(s.waiting) > 0 || removed.removed["u"] != 3 || removed.removed["v"] != 2 || removed.removed["w"] != 1 {
			t.Errorf("waiting %v, removals %v", s.waiting, removed.removed)
		}
	})
}

func openErasures(t *testing.T, s *Service) []Erasure {
	t.Helper()
	all, _, err := s.store.openErasures(t.Context(), openKey{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never happened")
		}
	}
}

// A node answers all requests that wait for erasures which another node has carried out.
func TestRequestsOfOtherNodesAreAnswered(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "answers/0"}
		asked, other := newOwner(d, l, &fakePersons{}, cursorAt(0), 5).Service, newOwner(d, l, &fakePersons{}, cursorAt(0), 5).Service
		const n = openPage + 200
		insertErasures(t, other, n)
		answers := make([]chan error, n)
		for i := range answers {
			answers[i] = make(chan error, 1)
			asked.addWaiting(fmt.Sprint(t.Name(), i), answers[i])
		}
		if asked.answerDone(t.Context()); len(asked.waiting) != n {
			t.Fatalf("%d wait", len(asked.waiting))
		}
		if err := other.processOpen(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if asked.answerDone(t.Context()); len(asked.waiting) > 0 {
			t.Fatalf("%d wait", len(asked.waiting))
		}
		answered := 0
		for _, answer := range answers {
			select {
			case err := <-answer:
				if answered++; err != nil {
					t.Error(err)
				}
			default:
			}
		}
		if answered != n {
			t.Errorf("%d answers", answered)
		}
	})
}

// Erasures that fail do not stop those behind them, however many they are.
func TestFailedErasuresDelayNoOthers(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		failing, removals := errors.New("failing"), 0
		removed := &fakePersons{onRemove: func() error {
			if removals++; removals <= openPage {
				return failing
			}
			return nil
		}}
		s := newOwner(d, &fakeLog{id: "failing/0"}, removed, cursorAt(0), 5).Service
		insertErasures(t, s, openPage+1)
		if err := s.processOpen(t.Context(), t.Context()); !errors.Is(err, failing) {
			t.Fatal(err)
		}
		last := fmt.Sprint("u", openPage)
		if open := openErasures(t, s); len(open) == 0 || removed.removed[last] != 1 {
			t.Errorf("%d open, the last one removed %d times", len(open), removed.removed[last])
		}
	})
}
