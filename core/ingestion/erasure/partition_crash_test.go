package erasure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/persons"
)

// A takeover that ends between two steps leaves a position behind which the database knows
// every erasure, and the next one carries out what is left.
func TestTakeoverCrashes(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"read", "remove", "removed", "save"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dbtest.Run(t, func(t *testing.T, d *db.DB) {
				for at := 1; ; at++ {
					if !crashAt(t, d, fmt.Sprint(step, "/", at), step, at) {
						if at < 2 {
							t.Error("the takeover does not do this")
						}
						return
					}
				}
			})
		})
	}
}

// crashAt takes a backlog with two unknown erasures over, which ends at a step when that is
// done for the n-th time. It reports whether it did.
func crashAt(t *testing.T, d *db.DB, id, step string, n int) bool {
	t.Helper()
	ctx, crash := context.WithCancel(t.Context())
	defer crash()
	crashed := false
	count := func(name string) func() error {
		return func() error {
			if name != step {
				return nil
			}
			if n--; n == 0 {
				crashed = true
				crash()
				return errCrash
			}
			return nil
		}
	}
	l := &fakeLog{id: id, limit: 4}
	l.addRequests(10)
	l.addErasure(t, id+" one", "u")
	l.addRequests(10)
	l.addErasure(t, id+" two", "u", "w")
	l.addRequests(10)
	removed := &crashingPersons{before: count("remove"), after: count("removed")}
	read := count("read")
	l.onRead = func(uint64) error { return read() }
	c := cursorAt(3)
	c.onStored = count("save")
	owner := newOwner(d, l, removed, c, 5)
	if err := owner.recover(ctx, 3); err == nil && step != "save" && crashed {
		t.Error("a takeover that crashed has succeeded")
	}
	l.onRead = nil
	requireKnown(t, owner, l, 3)
	takeOver(t, newOwner(d, l, removed, cursorAt(3), 5), 3)
	requireRecovered(t, owner, l, 3)
	if got := removed.removed; got["u"] < 2 || got["w"] < 1 || got["u"]+got["w"] > 5 {
		t.Errorf("removals %v", got)
	}
	return crashed
}

// The job that carries erasures out finishes one that a crashed takeover has recovered, and
// appends no further record: events that were accepted after the erasure stay.
func TestJobAfterCrashedTakeover(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "crashed takeover/3"} // not the first partition
		l.addRequests(1)
		l.addErasure(t, "crashed takeover", "u")
		l.addRequests(10)
		ctx, crash := context.WithCancel(t.Context())
		removed := &crashingPersons{before: func() error { crash(); return errCrash }, after: func() error { return nil }}
		owner := newOwner(d, l, removed, cursorAt(0), 5)
		if err := owner.recover(ctx, 0); err == nil {
			t.Fatal("the takeover has not crashed")
		}
		removed.before = func() error { return nil }
		job := newOwner(d, l, removed, cursorAt(0), 5).Service
		job.id = "crashed takeover/0"
		if err := job.processOpen(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if done, err := job.store.isDone(t.Context(), "crashed takeover"); !done || err != nil || removed.removed["u"] != 1 {
			t.Errorf("done: %v, %v; removals %v", done, err, removed.removed)
		}
		takeOver(t, newOwner(d, l, removed, cursorAt(0), 5), 0)
		requireRecovered(t, owner, l, 0)
		if n := l.last(); n != 12 {
			t.Errorf("the log has %d records", n)
		}
		marks, err := owner.Marks(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if marks.Verdict(1, "u", 1) != DropData || marks.Verdict(1, "u", 3) != Keep {
			t.Errorf("verdicts %v, %v", marks.Verdict(1, "u", 1), marks.Verdict(1, "u", 3))
		}
	})
}

// Erasures that wait share an append and a transaction; each is removed.
func TestErasuresAreRememberedTogether(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "together/0"}
		l.addRequests(3)
		removed := &fakePersons{}
		p := newOwner(d, l, removed, cursorAt(0), 5)
		const n = maxTogether + 20
		for i := range n {
			e := &Erasure{
				Removal: persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{fmt.Sprint("u", i)}, Events: true},
				ID:      fmt.Sprint("together ", i), RequestedAt: time.Unix(1_700_000_000+int64(i), 0).UTC(),
			}
			if err := p.store.insert(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.processOpen(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.appends != 3 || l.last() != 3+n { // the requests, and two groups
			t.Errorf("%d appends, %d records", l.appends, l.last())
		}
		takeOver(t, p, 0)
		requireRecovered(t, p, l, 0)
		marks, err := p.Marks(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			id := fmt.Sprint("u", i)
			if removed.removed[id] != 1 || marks.Verdict(1, id, 3) != DropData || marks.Verdict(1, id, l.last()+1) != Keep {
				t.Errorf("%s: %d removals, verdicts %v, %v", id, removed.removed[id], marks.Verdict(1, id, 3), marks.Verdict(1, id, l.last()+1))
			}
		}
		if open, _, err := p.store.openErasures(t.Context(), openKey{}, 1); err != nil || len(open) > 0 {
			t.Errorf("open: %v, %v", open, err)
		}
	})
}

// crashingPersons call functions before and after each removal.
type crashingPersons struct {
	fakePersons
	before, after func() error
}

func (p *crashingPersons) Remove(ctx context.Context, r *persons.Removal) error {
	if err := p.before(); err != nil {
		return err
	}
	if err := p.fakePersons.Remove(ctx, r); err != nil {
		return err
	}
	return p.after()
}

// requireKnown requires that the database knows the erasures of the records between a
// cursor and its position, if the log has that.
func requireKnown(t *testing.T, p *Partition, l *fakeLog, cursor uint64) {
	t.Helper()
	at := storedPosition(t, p.db, l)
	if at.seq == 0 || at.seq > l.last() || positionOf(&l.records[at.seq-1]) != at {
		return
	}
	requireErasures(t, p, l, cursor, at.seq)
}

// requireRecovered requires that the database knows all erasures behind a cursor.
func requireRecovered(t *testing.T, p *Partition, l *fakeLog, cursor uint64) {
	t.Helper()
	requireErasures(t, p, l, cursor, l.last())
}

func requireErasures(t *testing.T, p *Partition, l *fakeLog, after, last uint64) {
	t.Helper()
	for i := after; i < last; i++ {
		if !event.IsErasure(l.records[i].Data) {
			continue
		}
		e, err := event.ParseErasure(l.records[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		found := Erasure{Removal: persons.Removal{ProjectID: 1, DistinctIDs: e.DistinctIDs, Events: true}, ID: e.ID, Seq: i + 1}
		known, err := p.knowsAll(t.Context(), []Erasure{found})
		if err != nil {
			t.Fatal(err)
		}
		if !known {
			t.Fatalf("the database does not know the erasure %s of record %d of (%d, %d]", e.ID, i+1, after, last)
		}
	}
}

// history is a partition whose database and log are replaced by older ones, whose nodes
// crash, and of which former owners go on.
type history struct {
	t       *testing.T
	r       *rand.Rand
	d       *db.DB
	l       *fakeLog
	cursor  *uint64 // in the database
	owners  []*Partition
	cursors []*fakeCursor // of the owners
	id      int
	backups []backup
	steps   map[string]int
}

type backup struct {
	snapshot
	cursor uint64
}

// TestPositionHoldsErasures makes random histories and requires after each step that the
// database knows the erasures of the records between its cursor and its position, and after
// each takeover those of all records behind the cursor.
func TestPositionHoldsErasures(t *testing.T) {
	t.Parallel()
	all := map[string]int{}
	for seed := range uint64(8) {
		h := &history{
			t: t, r: rand.New(rand.NewPCG(seed, 88)), d: dbtest.SQLite(t), l: &fakeLog{id: "log/0", limit: 7}, cursor: new(uint64), steps: all,
		}
		h.takeOver()
		for step := range 150 {
			name, do := h.choose()
			all[name]++
			do()
			requireKnown(t, h.owners[0], h.l, *h.cursor)
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %s", seed, step, name)
			}
		}
		if storedPosition(t, h.d, h.l).seq > 0 {
			all["positions"]++
		}
	}
	for _, name := range []string{"takeover", "crash", "ahead", "former owner", "restore", "cut", "saved", "positions"} {
		if all[name] < 5 {
			t.Errorf("%q happened %d times", name, all[name])
		}
	}
}

func (h *history) choose() (string, func()) {
	steps := []struct {
		weight int
		name   string
		do     func()
	}{
		{30, "requests", func() { h.l.addRequests(1 + h.r.IntN(30)) }},
		{20, "erasure", h.erase},
		{15, "job", h.runJob},
		{15, "ahead", func() { h.scanAhead(len(h.owners) - 1) }},
		{5, "former owner", func() { h.scanAhead(h.r.IntN(len(h.owners))) }},
		{12, "process", h.process},
		{6, "takeover", h.takeOver},
		{6, "crash", h.crash},
		{4, "backup", func() { h.backups = append(h.backups, backup{takeSnapshot(h.t, h.d), *h.cursor}) }},
		{3, "restore", h.restore},
		{2, "cut", h.cut},
	}
	n := 0
	for _, s := range steps {
		n += s.weight
	}
	n = h.r.IntN(n)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			return s.name, s.do
		}
	}
	panic("no step")
}

// owner returns the newest owner.
func (h *history) owner() *Partition { return h.owners[len(h.owners)-1] }

// erase requests an erasure. The job may have begun it.
func (h *history) erase() {
	h.id++
	e := &Erasure{
		Removal: persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{fmt.Sprint("u", h.r.IntN(20))}, Events: true},
		ID:      fmt.Sprint("erasure ", h.id), RequestedAt: time.Unix(1_700_000_000+int64(h.id), 0).UTC(),
	}
	if err := h.owner().store.insert(h.t.Context(), e); err != nil {
		h.t.Fatal(err)
	}
	if h.r.IntN(3) == 0 { // appended, and the job crashes
		h.l.addErasure(h.t, e.ID, e.DistinctIDs...)
	}
}

// runJob carries out some open erasures, or a part of that.
func (h *history) runJob() {
	s := h.owner().Service
	open, _, err := s.store.openErasures(h.t.Context(), openKey{}, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range open {
		if h.r.IntN(2) == 0 {
			continue
		}
		if err := s.rememberOnLog(h.t.Context(), &open[i]); err != nil {
			h.t.Fatal(err)
		}
		if h.r.IntN(2) == 0 {
			continue
		}
		if err := s.remove(h.t.Context(), &open[i]); err != nil {
			h.t.Fatal(err)
		}
	}
}

// process moves the cursor of the newest owner, as its worker does: only if the cursor in
// the database is the known one.
func (h *history) process() {
	c := h.cursors[len(h.cursors)-1]
	if c.processed != *h.cursor || c.processed >= h.l.last() {
		return
	}
	c.processed += min(1+h.r.Uint64N(12), h.l.last()-c.processed)
	*h.cursor = c.processed
}

func (h *history) scanAhead(owner int) {
	before := storedPosition(h.t, h.d, h.l)
	if err := h.owners[owner].scanAhead(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if storedPosition(h.t, h.d, h.l) != before {
		h.steps["saved"]++
	}
}

// newOwner returns an owner that has not taken the partition over.
func (h *history) newOwner(p Persons) (*Partition, *fakeCursor) {
	c := &fakeCursor{processed: *h.cursor, stored: h.cursor}
	return newOwner(h.d, h.l, p, c, 8), c
}

func (h *history) takeOver() {
	p, c := h.newOwner(&fakePersons{})
	takeOver(h.t, p, *h.cursor)
	h.owners, h.cursors = append(h.owners, p), append(h.cursors, c)
	requireRecovered(h.t, p, h.l, *h.cursor)
}

// crash begins a takeover that ends at a random step.
func (h *history) crash() {
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	left := h.r.IntN(8)
	step := func() error {
		if left--; left < 0 {
			cancel()
			return errCrash
		}
		return nil
	}
	p, c := h.newOwner(&crashingPersons{before: step, after: step})
	h.l.onRead, c.onStored = func(uint64) error { return step() }, step
	defer func() { h.l.onRead = nil }()
	if err := p.recover(ctx, *h.cursor); err != nil && !errors.Is(err, errCrash) && !errors.Is(err, context.Canceled) {
		h.t.Fatal(err)
	}
}

// restore replaces the database by a backup. Nodes read their cursors again before they
// process; those that do not know yet go on.
func (h *history) restore() {
	if len(h.backups) == 0 {
		return
	}
	n := h.r.IntN(len(h.backups))
	h.backups[n].restore(h.t, h.d)
	*h.cursor = h.backups[n].cursor
	h.backups = slices.Clone(h.backups[:n+1]) // later ones are of another history
}

// cut loses the newest records of the log, behind the cursor.
func (h *history) cut() {
	if last := h.l.last(); *h.cursor < last {
		h.l.cut(int(*h.cursor + h.r.Uint64N(last-*h.cursor)))
	}
}
