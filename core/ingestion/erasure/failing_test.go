package erasure

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
)

// TestFailingStatements lets each statement of an operation fail in turn. What reports success has
// done everything, and the next attempt does what is left.
func TestFailingStatements(t *testing.T) {
	t.Parallel()
	d, failures := dbtest.FailingSQLite(t)

	// A takeover with an unknown erasure, one that was requested here, and one that is done.
	takeover := func(id string) failingCase {
		l, removed := &fakeLog{id: id, limit: 4}, &fakePersons{}
		for i, kind := range []string{"unknown", "requested", "unknown again"} {
			l.addRequests(4)
			name := fmt.Sprint(id, " ", kind)
			if kind == "requested" {
				e := &Erasure{
					Removal: persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"requested"}, Events: true}, ID: name,
					RequestedAt: time.Unix(1_700_000_000, 0).UTC(),
				}
				if err := (&store{d}).insert(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				l.addErasure(t, name, "requested")
				continue
			}
			l.addErasure(t, name, fmt.Sprint(kind, i), "shared")
		}
		l.addRequests(4)
		owner := newOwner(d, l, removed, cursorAt(1), 5)
		return failingCase{
			do: func() error { return owner.recover(t.Context(), 1) },
			check: func() {
				requireRecovered(t, owner, l, 1)
				if removed.removed["unknown0"] < 1 || removed.removed["unknown again2"] < 1 || removed.removed["requested"] > 0 {
					t.Errorf("removals %v", removed.removed)
				}
			},
			next: func() { owner = newOwner(d, l, removed, cursorAt(1), 5) },
		}
	}

	// The job, on a log.
	job := func(id string) failingCase {
		l, removed := &fakeLog{id: id}, &fakePersons{}
		l.addRequests(2)
		s := newOwner(d, l, removed, cursorAt(0), 5).Service
		for i := range 3 {
			insertErasure(t, s, fmt.Sprint(id, i), int64(i+1), fmt.Sprint("u", i))
		}
		return failingCase{
			do: func() error { return s.processOpen(t.Context(), t.Context()) },
			check: func() {
				owner := newOwner(d, l, removed, cursorAt(0), 5)
				requireDone(t, s.store, id+"0", id+"1", id+"2")
				takeOver(t, owner, 0)
				marks, err := owner.Marks(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 3 {
					name := fmt.Sprint("u", i)
					if removed.removed[name] < 1 || marks.Verdict(1, name, 2) != DropData || marks.Verdict(1, name, l.last()+1) != Keep {
						t.Errorf("%s: %d removals, verdicts %d and %d", name, removed.removed[name], marks.Verdict(1, name, 2), marks.Verdict(1, name, l.last()+1))
					}
				}
			},
			next: func() { s = newOwner(d, l, removed, cursorAt(0), 5).Service },
		}
	}

	// A request. Its erasure is open when the transaction has ended, and not before.
	request := func(id string) failingCase {
		s := New(d, newFakeJournal(id), &fakePersons{}, zap.NewNop())
		return failingCase{
			do: func() error {
				return d.Tx(t.Context(), func(ctx context.Context) error {
					e := &Erasure{Removal: persons.Removal{ProjectID: 1, PersonID: 3, DistinctIDs: []string{"u"}}, ID: id, RequestedAt: time.Now().UTC()}
					return s.store.insertOrJoin(ctx, e)
				})
			},
			check: func() {
				if open := openErasures(t, s); len(open) != 1 || open[0].ID != id {
					t.Errorf("open: %+v, want one", open)
				}
				if err := s.processOpen(t.Context(), t.Context()); err != nil {
					t.Error(err)
				}
				requireDone(t, s.store, id)
			},
			next: func() {},
		}
	}

	for name, newCase := range map[string]func(string) failingCase{"takeover": takeover, "job": job, "request": request} {
		for at := 1; ; at++ {
			id := fmt.Sprint(name, "/", at)
			c := newCase(id)
			failures.FailAt(at)
			err := c.do()
			failed := failures.HasFailed()
			if err == nil {
				c.check()
			} else {
				if !failed {
					t.Fatalf("%s: %v", id, err)
				}
				c.next()
				if err := c.do(); err != nil {
					t.Fatalf("%s: the second attempt: %v", id, err)
				}
				c.check()
			}
			if t.Failed() {
				t.Fatalf("%s: first attempt: %v", id, err)
			}
			if !failed {
				if at < 4 {
					t.Errorf("%s has only %d statements", name, at-1)
				}
				break
			}
		}
	}
}

// failingCase is an operation on data of its own.
type failingCase struct {
	do    func() error
	check func() // after success
	next  func() // a new process
}

func insertErasure(t *testing.T, s *Service, id string, person int64, distinctIDs ...string) *Erasure {
	t.Helper()
	e := &Erasure{
		Removal: persons.Removal{ProjectID: 1, PersonID: person, DistinctIDs: distinctIDs, Events: true},
		ID:      id, RequestedAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	if err := s.store.insert(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

func requireDone(t *testing.T, s *store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if done, err := s.isDone(t.Context(), id); err != nil || !done {
			t.Errorf("%s is done: %v (%v)", id, done, err)
		}
	}
	done, err := s.doneOf(t.Context(), append(ids, "no such erasure"))
	if slices.Sort(done); err != nil || !slices.Equal(done, ids) {
		t.Errorf("%v are done (%v), want %v", done, err, ids)
	}
}

// A failure to remember erasures together does not keep one of them from being carried out.
func TestRememberedTogetherAfterAFailure(t *testing.T) {
	t.Parallel()
	d, l, removed := dbtest.SQLite(t), &fakeLog{id: "group/0"}, &fakePersons{}
	s := newOwner(d, l, removed, cursorAt(0), 5).Service
	appends := 0
	s.partitions = &hookedLog{l, func() error {
		if appends++; appends == 1 {
			return errCrash
		}
		return nil
	}}
	insertErasures(t, s, 3)
	if err := s.processOpen(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	if appends != 4 || len(removed.removed) != 3 || len(openErasures(t, s)) > 0 { // the group, and each alone
		t.Errorf("%d appends, removals %v", appends, removed.removed)
	}

	// One erasure is no group, and a process that ends remembers no further one.
	appends = 1
	insertErasure(t, s, "alone", 50, "alone")
	if err := s.processOpen(t.Context(), t.Context()); err != nil || appends != 2 {
		t.Errorf("%d appends for one erasure (%v)", appends-1, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	s.rememberTogether(ended, []Erasure{*insertErasure(t, s, "late", 51, "late"), *insertErasure(t, s, "later", 52, "later")})
	if appends != 2 {
		t.Errorf("%d appends of a process that ends", appends-2)
	}
}

// The transaction that writes marks waits for those that process events, and these wait for it.
func TestMarksWaitForTransactions(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	l := &fakeLog{id: "lock/0"}
	s := newOwner(d, l, &fakePersons{}, cursorAt(0), 5).Service
	e := insertErasure(t, s, "lock", 7, "u")
	if err := s.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting := func() bool {
		var n int
		err := d.Read(t.Context()).NewRaw("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = ? AND objid = ?",
			int64(erasureLock>>32), int64(erasureLock&0xffffffff)).Scan(t.Context(), &n)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}

	remembered := make(chan error, 1)
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		if err := s.Lock(ctx); err != nil {
			return err
		}
		// Another transaction of the pipeline does not wait.
		if err := d.Tx(t.Context(), s.Lock); err != nil {
			return err
		}
		go func() { remembered <- s.rememberOnLog(context.WithoutCancel(t.Context()), e) }()
		waitFor(t, waiting)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-remembered; err != nil {
		t.Fatal(err)
	}

	processed := make(chan error, 1)
	err = d.Tx(t.Context(), func(ctx context.Context) error {
		if err := s.store.lock(ctx, true); err != nil {
			return err
		}
		go func() { processed <- d.Tx(context.WithoutCancel(t.Context()), s.Lock) }()
		waitFor(t, waiting)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-processed; err != nil {
		t.Fatal(err)
	}
	if err := s.store.lock(t.Context(), true); err != nil { // outside of a transaction there is nothing to hold it
		t.Error(err)
	}
}

// A node without partitions keeps its marks in memory: its transactions take no lock.
func TestLockWithoutPartitions(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	s := New(d, newFakeJournal("no lock"), &fakePersons{}, zap.NewNop())
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		if err := s.Lock(ctx); err != nil {
			return err
		}
		return d.Tx(t.Context(), func(ctx context.Context) error { return s.store.lock(ctx, true) })
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRecoverNextIsBounded checks how much a takeover reads before it writes its position.
func TestRecoverNextIsBounded(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	for _, c := range []struct {
		name               string
		records, size, per int // of the log; records of a read
		saveRecords        int
		missing            uint64 // records that the log had and has lost
		want               []int  // records read by each step
	}{
		{"by records", 20, 10, 4, 8, 0, []int{8, 8, 4}},
		{"by bytes", 10, saveBytes/4 + 1, 1, 100, 0, []int{4, 4, 2}},
		{"the end", 8, 10, 4, 8, 0, []int{8, 0}},
		{"lost records", 10, 10, 4, 8, 5, []int{8, 2}},
	} {
		l := &fakeLog{id: "bounded " + c.name, limit: c.per}
		l.addRecords(c.records, c.size)
		p := newOwner(d, l, &fakePersons{}, nil, c.saveRecords)
		takeOver(t, p, l.last()) // loads the key
		s := newScan(1, 0)
		l.reads()
		for i, want := range c.want {
			end, err := p.recoverNext(t.Context(), s, l.last()+c.missing)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.reads(); got != want || end != (i == len(c.want)-1) {
				t.Errorf("%s, step %d: %d records, the end %v; want %d of %v", c.name, i, got, end, want, c.want)
			}
		}
	}
}
