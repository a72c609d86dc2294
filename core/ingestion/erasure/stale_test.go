package erasure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/persons"
)

// hookedLog calls a function before each append, which fails with its error.
type hookedLog struct {
	*fakeLog
	before func() error
}

func (l *hookedLog) Append(ctx context.Context, parts []eventlog.Part) error {
	if err := l.before(); err != nil {
		return err
	}
	return l.fakeLog.Append(ctx, parts)
}

// insertErasures inserts n erasures of one person each, with the distinct ids u0, u1 and so on.
func insertErasures(t *testing.T, s *Service, n int) {
	t.Helper()
	for i := range n {
		e := &Erasure{
			Removal: persons.Removal{ProjectID: 1, PersonID: int64(7 + i), DistinctIDs: []string{fmt.Sprint("u", i)}, Events: true},
			ID:      fmt.Sprint(t.Name(), i), RequestedAt: time.Now().UTC().Truncate(time.Microsecond),
		}
		if err := s.store.insert(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// stoppedNode returns the service of a node that was stopped after it had read two open
// erasures, and that of the next owner of the job.
func stoppedNode(t *testing.T, d *db.DB, l *fakeLog) (former, next *Service, open []Erasure) {
	t.Helper()
	former, next = newOwner(d, l, &fakePersons{}, cursorAt(0), 5).Service, newOwner(d, l, &fakePersons{}, cursorAt(0), 5).Service
	insertErasures(t, former, 2)
	err := former.load(t.Context())
	if err == nil {
		open, _, err = former.store.openErasures(t.Context(), openKey{}, 10)
	}
	if err != nil {
		t.Fatal(err)
	}
	return former, next, open
}

// verdictAfterTakeover is the verdict for an event when a node takes the partition over.
func verdictAfterTakeover(t *testing.T, d *db.DB, l *fakeLog, id string, seq uint64) Verdict {
	t.Helper()
	owner := newOwner(d, l, &fakePersons{}, cursorAt(0), 5)
	takeOver(t, owner, 0)
	m, err := owner.Marks(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return m.Verdict(1, id, seq)
}

// A node that read the open erasures and was stopped appends nothing of those that another
// node has carried out meanwhile.
func TestDoneErasuresAreNotAppended(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "stopped/0"}
		former, next, open := stoppedNode(t, d, l)
		if err := next.processOpen(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		l.addRequests(1)
		later := l.last()
		former.rememberTogether(t.Context(), open)
		if l.last() != later {
			t.Errorf("%d records were appended", l.last()-later)
		}
		if v := verdictAfterTakeover(t, d, l, "u0", later); v != Keep {
			t.Errorf("an event that was accepted after the answer: verdict %d", v)
		}
	})
}

// An append that was in flight when its node was stopped, and that arrives after another
// node has answered, concerns no event that was accepted after the answer.
func TestLateRecordOfADoneErasure(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "late/0"}
		former, next, open := stoppedNode(t, d, l)
		ctx, lose := context.WithCancel(t.Context())
		var later uint64
		former.partitions = &hookedLog{l, func() error {
			err := next.processOpen(t.Context(), t.Context())
			l.addRequests(1)
			later = l.last()
			lose()
			return err
		}}
		former.rememberTogether(ctx, open)
		if l.last() == later {
			t.Fatal("nothing was appended late")
		}
		if v := verdictAfterTakeover(t, d, l, "u0", later); v != Keep {
			t.Errorf("an event that was accepted after the answer: verdict %d", v)
		}
		if v := verdictAfterTakeover(t, d, l, "u0", 0); v != DropData {
			t.Errorf("an event that was accepted before the request: verdict %d", v)
		}
	})
}

// Requests that are repeated while the log is away join one erasure.
func TestRepeatedRequestsWithoutLog(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := newOwner(d, &fakeLog{id: "away/0"}, &fakePersons{}, cursorAt(0), 5).Service
		away := errors.New("away")
		s.partitions = &hookedLog{&fakeLog{id: "away/0"}, func() error { return away }}
		for i := range 6 {
			e := &Erasure{
				Removal: persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true},
				ID:      fmt.Sprint("away", i), RequestedAt: time.Now().UTC(),
			}
			if err := d.Tx(t.Context(), func(ctx context.Context) error { return s.store.insertOrJoin(ctx, e) }); err != nil {
				t.Fatal(err)
			}
			if err := s.processOpen(t.Context(), t.Context()); !errors.Is(err, away) {
				t.Fatal(err)
			}
		}
		if open := openErasures(t, s); len(open) != 1 {
			t.Errorf("%d open erasures of one person", len(open))
		}
	})
}

// Erasures of many distinct ids share no long transaction.
func TestGroupLength(t *testing.T) {
	t.Parallel()
	of := func(ids ...int) (open []Erasure) {
		for _, n := range ids {
			open = append(open, Erasure{Removal: persons.Removal{DistinctIDs: make([]string, n)}})
		}
		return open
	}
	for _, c := range []struct {
		open []Erasure
		want int
	}{
		{of(1), 1}, {of(1, 1, 1), 3}, {of(5000, 1), 1}, {of(1, maxIDsTogether, 1), 1},
		{of(500, 500, 1), 2}, {make([]Erasure, maxTogether+1), maxTogether},
	} {
		if got := groupLength(c.open); got != c.want {
			t.Errorf("%d erasures: %d, want %d", len(c.open), got, c.want)
		}
	}
}
