package erasure

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
)

// TestScan checks which records a scan has behind its base, and where its position is.
func TestScan(t *testing.T) {
	t.Parallel()
	read := func(last uint64, records int, found ...Erasure) func(*scan) {
		return func(s *scan) {
			s.add(&chunk{records: records, bytes: 10 * records, through: position{last, last}, found: found})
		}
	}
	damaged := func(last uint64) func(*scan) {
		return func(s *scan) { s.add(&chunk{through: position{seq: last}, unread: last}) }
	}
	cursor := func(seq uint64) func(*scan) { return func(s *scan) { s.skipTo(seq) } }
	save := func(s *scan) { s.saved() }
	one := Erasure{ID: "one"}
	type want struct {
		base, through, next, unread uint64
		records, found              int
	}
	cases := map[string]struct {
		first, after uint64
		steps        []func(*scan)
		want         want
	}{
		"a new one is at the cursor":               {1, 7, nil, want{7, 7, 7, 0, 0, 0}},
		"deleted records are not looked for":       {11, 7, nil, want{10, 10, 10, 0, 0, 0}},
		"an empty log":                             {0, 0, nil, want{}},
		"it moves with what is read":               {1, 7, []func(*scan){read(9, 2, one), read(20, 11)}, want{7, 20, 20, 0, 13, 1}},
		"an erasure counts once":                   {1, 7, []func(*scan){read(9, 2, one), read(20, 11, one)}, want{7, 20, 20, 0, 13, 1}},
		"behind a position nothing is left":        {1, 7, []func(*scan){read(9, 2, one), save, read(12, 3)}, want{9, 12, 12, 0, 3, 0}},
		"damage stops the position":                {1, 7, []func(*scan){read(9, 2), damaged(11), read(20, 9, one)}, want{7, 9, 20, 11, 2, 0}},
		"the later damage counts":                  {1, 7, []func(*scan){damaged(11), read(20, 9), damaged(25)}, want{7, 7, 25, 25, 0, 0}},
		"a cursor before damage changes nothing":   {1, 7, []func(*scan){damaged(11), read(20, 9), cursor(10)}, want{7, 7, 20, 11, 0, 0}},
		"a cursor behind damage begins there":      {1, 7, []func(*scan){damaged(11), read(20, 9), cursor(11)}, want{11, 11, 11, 0, 0, 0}},
		"a cursor behind the position skips":       {1, 7, []func(*scan){read(9, 2, one), cursor(30)}, want{30, 30, 30, 0, 0, 0}},
		"a cursor at the position has all":         {1, 7, []func(*scan){read(9, 2, one), cursor(9)}, want{9, 9, 9, 0, 0, 0}},
		"a cursor before the position keeps found": {1, 7, []func(*scan){read(9, 2, one), cursor(8)}, want{7, 9, 9, 0, 2, 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScan(c.first, c.after)
			for _, step := range c.steps {
				step(s)
			}
			got := want{s.base, s.through.seq, s.next, s.unread, s.records, len(s.found.all)}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A takeover with a backlog reads what is behind the position of the owner before.
func TestTakeoverReadsBehindPosition(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := &fakeLog{id: "log/0"}
		l.addRequests(20_000)
		l.addErasure(t, "lost", "u")
		l.addRequests(20_000)
		removed := &fakePersons{}
		owner := newOwner(d, l, removed, cursorAt(5), saveRecords)
		takeOver(t, owner, 5)
		if n := l.reads(); n != 40_001-5 {
			t.Errorf("the first owner has read %d records", n)
		}
		if removed.removed["u"] != 1 {
			t.Errorf("%d removals", removed.removed["u"])
		}
		at := storedPosition(t, d, l)
		if at.seq < 20_001 || at.seq > l.last() {
			t.Fatalf("the position is %d", at.seq)
		}
		takeOver(t, newOwner(d, l, removed, cursorAt(5), saveRecords), 5)
		if n, want := l.reads(), 40_001-int(at.seq)+1; n != want { // and the record at the position
			t.Errorf("the second owner has read %d records, not %d", n, want)
		}
		// Without changes, an owner that has the backlog reads what is new, and the next one
		// what the other has not written.
		l.addRequests(20_000)
		if err := owner.scanAhead(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := l.reads(); n != 20_001 {
			t.Errorf("%d records were read ahead", n)
		}
		if at = storedPosition(t, d, l); at.seq != l.last() {
			t.Errorf("the position is %d of %d", at.seq, l.last())
		}
		l.addRequests(7)
		takeOver(t, newOwner(d, l, removed, cursorAt(5), saveRecords), 5)
		if n := l.reads(); n != 8 {
			t.Errorf("the third owner has read %d records", n)
		}
		if removed.removed["u"] != 1 {
			t.Errorf("%d removals", removed.removed["u"])
		}
	})
}

// While the worker keeps up, nothing is written, and a cursor behind the position counts.
func TestScanFollowsTheCursor(t *testing.T) {
	t.Parallel()
	d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
	c := cursorAt(0)
	owner := newOwner(d, l, &fakePersons{}, c, 10)
	takeOver(t, owner, 0)
	for range 20 {
		l.addRequests(9)
		if err := owner.scanAhead(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.processed, *c.stored = l.last(), l.last()
	}
	if at := storedPosition(t, d, l); at.seq != 0 {
		t.Errorf("the position %d was written", at.seq)
	}
	l.reads()
	takeOver(t, newOwner(d, l, &fakePersons{}, c, 10), l.last())
	if n := l.reads(); n != 0 {
		t.Errorf("%d records were read before the cursor", n)
	}
}

// The position waits for an erasure that is carried out: its record is in the log before its
// marks are in the database.
func TestPositionWaitsForMarks(t *testing.T) {
	t.Parallel()
	d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
	owner := newOwner(d, l, &fakePersons{}, cursorAt(0), 10)
	takeOver(t, owner, 0)
	e := &Erasure{Removal: persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}, ID: "own", RequestedAt: time.Now()}
	if err := owner.store.insert(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	l.addRequests(5)
	l.addErasure(t, "own", "u")
	l.addRequests(20)
	for range 2 {
		if err := owner.scanAhead(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := storedPosition(t, d, l); at.seq != 0 {
			t.Fatalf("the position is %d before the marks", at.seq)
		}
	}
	if err := owner.rememberOnLog(t.Context(), e); err != nil { // appends the record again
		t.Fatal(err)
	}
	for range 2 {
		if err := owner.scanAhead(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if at := storedPosition(t, d, l); at.seq != l.last() {
		t.Errorf("the position is %d of %d", at.seq, l.last())
	}
}

// A position behind which the log has other records now counts for nothing, whether the log
// ends before it or has given its number again.
func TestPositionOfLostRecords(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]int{"the log ends before it": 0, "its number is given again": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
			l.addRequests(50)
			takeOver(t, newOwner(d, l, &fakePersons{}, cursorAt(3), 10), 3)
			if at := storedPosition(t, d, l); at.seq != 50 {
				t.Fatalf("the position is %d", at.seq)
			}
			l.cut(20)
			l.addErasure(t, "lost", "u")
			l.addRequests(again)
			removed := &fakePersons{}
			owner := newOwner(d, l, removed, cursorAt(3), 10)
			takeOver(t, owner, 3)
			if removed.removed["u"] != 1 {
				t.Errorf("%d removals", removed.removed["u"])
			}
			if at := storedPosition(t, d, l); at.seq != l.last() {
				t.Errorf("the position is %d of %d", at.seq, l.last())
			}
			// The owner notices a loss itself.
			l.cut(20)
			l.addErasure(t, "again", "w")
			l.addRequests(80)
			for range 2 {
				if err := owner.scanAhead(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if at := storedPosition(t, d, l); at.seq > 20 && at.seq <= l.last() && at == positionOf(&l.records[at.seq-1]) {
				t.Errorf("the position %d is behind an erasure that the database does not know", at.seq)
			}
			takeOver(t, newOwner(d, l, removed, cursorAt(3), 10), 3)
			if removed.removed["w"] != 1 {
				t.Errorf("%d removals", removed.removed["w"])
			}
		})
	}
}

// A log that was replaced has no position.
func TestPositionOfAnotherLog(t *testing.T) {
	t.Parallel()
	d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
	l.addRequests(50)
	takeOver(t, newOwner(d, l, &fakePersons{}, cursorAt(3), 10), 3)
	other := &fakeLog{id: "other/0", records: slices.Clone(l.records)}
	other.addErasure(t, "lost", "u")
	removed := &fakePersons{}
	takeOver(t, newOwner(d, other, removed, cursorAt(3), 10), 3)
	if n := other.reads(); n != 48 || removed.removed["u"] != 1 {
		t.Errorf("%d records were read, %d removals", n, removed.removed["u"])
	}
}

// Records that cannot be read now may be erasures: the position stays before them until the
// cursor has passed them.
func TestPositionStopsAtDamage(t *testing.T) {
	t.Parallel()
	d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
	l.addRequests(30)
	at := l.addErasure(t, "lost", "u")
	l.addRequests(30)
	l.damaged = map[uint64]bool{at: true}
	removed, c := &fakePersons{}, cursorAt(3)
	owner := newOwner(d, l, removed, c, 10)
	takeOver(t, owner, 3)
	if got := storedPosition(t, d, l); got.seq != at-1 {
		t.Errorf("the position is %d, not before %d", got.seq, at)
	}
	l.damaged = nil
	takeOver(t, newOwner(d, l, removed, c, 10), 3)
	if removed.removed["u"] != 1 {
		t.Errorf("%d removals", removed.removed["u"])
	}
	l.damaged = map[uint64]bool{l.last(): true}
	takeOver(t, owner, 3)
	l.addRequests(30)
	for _, cursor := range []uint64{40, l.last() - 30} {
		c.processed, *c.stored = cursor, cursor
		if err := owner.scanAhead(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := storedPosition(t, d, l); got.seq != l.last() {
		t.Errorf("the position is %d of %d", got.seq, l.last())
	}
}

// A node that goes on after the database was replaced by a backup writes no position: it has
// read for the other database.
func TestPositionAfterRestore(t *testing.T) {
	t.Parallel()
	cases := map[string]func(p *Partition, c *fakeCursor, l *fakeLog){
		"behind an erasure that was recovered": func(p *Partition, _ *fakeCursor, l *fakeLog) {
			takeOver(t, p, 3)
			if at := storedPosition(t, p.db, l); at.seq != l.last() {
				t.Errorf("the position is %d of %d", at.seq, l.last())
			}
		},
		"behind an erasure that was processed": func(_ *Partition, c *fakeCursor, l *fakeLog) {
			c.processed = l.last()
		},
	}
	for name, pass := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
			l.addRequests(50)
			c := cursorAt(3)
			owner := newOwner(d, l, &fakePersons{}, c, 10)
			takeOver(t, owner, 3)
			backup := takeSnapshot(t, d)
			l.addRequests(20)
			l.addErasure(t, "later", "u")
			pass(owner, c, l)
			backup.restore(t, d)
			for range 3 {
				l.addRequests(40)
				if err := owner.scanAhead(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if at := storedPosition(t, d, l); at.seq != 50 {
				t.Errorf("the position is %d", at.seq)
			}
			removed := &fakePersons{}
			takeOver(t, newOwner(d, l, removed, cursorAt(3), 10), 3)
			if removed.removed["u"] != 1 {
				t.Errorf("%d removals", removed.removed["u"])
			}
		})
	}
}

// Without a cursor, the position is written if the scan began at the oldest record.
func TestPositionWithoutACursor(t *testing.T) {
	t.Parallel()
	for after, want := range map[uint64]uint64{0: 30, 3: 0} {
		d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
		l.addRequests(30)
		takeOver(t, newOwner(d, l, &fakePersons{}, nil, 10), after)
		if at := storedPosition(t, d, l); at.seq != want {
			t.Errorf("behind record %d: the position is %d, want %d", after, at.seq, want)
		}
	}
}

// ScanAhead ends with its context.
func TestScanAheadEnds(t *testing.T) {
	t.Parallel()
	d, l := dbtest.SQLite(t), &fakeLog{id: "log/0"}
	owner := newOwner(d, l, &fakePersons{}, nil, 10)
	takeOver(t, owner, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	owner.ScanAhead(ctx)
}
