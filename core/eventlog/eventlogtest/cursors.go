package eventlogtest

import (
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

func register(t *testing.T, p eventlog.Partition, reader string, from journal.Start) journal.Position {
	t.Helper()
	at, err := p.Register(ctx(t), reader, from)
	must(t, err)
	return at
}

func starts(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 1)
	equal(t, "the begin of an empty log", register(t, p, "first", journal.Begin), journal.Position{})
	equal(t, "the end of an empty log", register(t, p, "second", journal.End), journal.Position{})
	k.append(t, k.last(), numbers(5)...)
	last := read(t, p, 0, 5)[4].Seq
	equal(t, "the begin", register(t, p, "third", journal.Begin), journal.Position{})
	equal(t, "the end", register(t, p, "fourth", journal.End), journal.Position{Seq: last})
	_, err := p.Register(ctx(t), "", journal.Begin)
	equal(t, "kind of a reader without a name", fault.KindOf(err), fault.Invalid)
}

// registersAll registers readers before and after an owner has begun.
func registersAll(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 1)
	register(t, p, "old", journal.Begin)
	k.append(t, k.last(), numbers(3)...)
	records := read(t, p, 0, 3)
	at := journal.Position{Seq: records[1].Seq, Count: 2}
	must(t, p.Commit(ctx(t), "old", at))
	for range 2 { // a second time nothing changes
		must(t, k.log.Register(ctx(t), "old", journal.End))
		must(t, k.log.Register(ctx(t), "new", journal.End))
	}
	k.append(t, k.last(), "after")
	must(t, k.log.Register(ctx(t), "new", journal.End))
	for n := range k.log.Partitions() {
		s, err := k.log.Partition(n, 1).Stats(ctx(t))
		must(t, err)
		equal(t, "readers", len(s.Readers), 2)
	}
	equal(t, "the old reader", register(t, p, "old", journal.End), at)
	equal(t, "the new reader", register(t, p, "new", journal.Begin).Seq, records[2].Seq)
	must(t, p.Commit(ctx(t), "new", journal.Position{Seq: records[2].Seq, Count: 1}))
}

// startsBeforeOwner registers readers at the end of a log that no one has read: what was
// appended before reaches them. Once a partition has an owner, a new reader begins at the
// end of all.
func startsBeforeOwner(t *testing.T, k *kit) {
	for n := range k.log.Partitions() {
		k.append(t, n, "early")
	}
	for _, reader := range []string{"first", "second"} {
		must(t, k.log.Register(ctx(t), reader, journal.End))
	}
	owned := k.log.Partition(k.last(), 1)
	register(t, owned, "worker", journal.Begin)
	must(t, k.log.Register(ctx(t), "late", journal.End))
	for n := range k.log.Partitions() {
		p := k.log.Partition(n, 2)
		early := read(t, p, 0, 1)[0]
		for _, reader := range []string{"first", "second"} {
			if at := register(t, p, reader, journal.End); at.Seq >= early.Seq {
				t.Errorf("partition %d: %s begins behind record %d, at %v", n, reader, early.Seq, at)
			}
		}
		equal(t, "the begin of a reader after an owner", register(t, p, "late", journal.Begin).Seq, early.Seq)
	}
}

func commits(t *testing.T, k *kit) {
	p := k.log.Partition(0, 1)
	equal(t, "kind of an unknown reader", fault.KindOf(p.Commit(ctx(t), "reader", journal.Position{})), fault.NotFound)
	register(t, p, "reader", journal.Begin)
	k.append(t, 0, numbers(5)...)
	records := read(t, p, 0, 5)
	at := journal.Position{Seq: records[2].Seq, Index: 4, Count: 10}
	must(t, p.Commit(ctx(t), "reader", at))
	must(t, p.Commit(ctx(t), "reader", at))
	for _, q := range []journal.Position{
		{Seq: records[1].Seq, Index: 9, Count: 10}, {Seq: at.Seq, Index: 3, Count: 10}, {Seq: at.Seq, Index: 4, Count: 9},
		{Seq: records[3].Seq, Count: 9}, {},
	} {
		equal(t, fmt.Sprintf("kind of %v after %v", q, at), fault.KindOf(p.Commit(ctx(t), "reader", q)), fault.Conflict)
	}
	beyond := journal.Position{Seq: records[4].Seq + 1, Count: 20}
	equal(t, "kind of a position beyond the end", fault.KindOf(p.Commit(ctx(t), "reader", beyond)), fault.Invalid)
	equal(t, "position", register(t, p, "reader", journal.End), at)
	must(t, p.Commit(ctx(t), "reader", journal.Position{Seq: records[4].Seq, Count: 12}))
	must(t, p.Unregister(ctx(t), "reader"))
	must(t, p.Unregister(ctx(t), "reader"))
	equal(t, "position of a new reader", register(t, p, "reader", journal.Begin), journal.Position{})
}

func cursorSurvives(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 1)
	register(t, p, "reader", journal.Begin)
	k.append(t, k.last(), numbers(5)...)
	at := journal.Position{Seq: read(t, p, 0, 5)[1].Seq, Count: 2}
	must(t, p.Commit(ctx(t), "reader", at))
	k.reopen(t)
	p = k.log.Partition(k.last(), 1)
	equal(t, "position", register(t, p, "reader", journal.Begin), at)
	equal(t, "the next record", string(read(t, p, at.Seq, 1)[0].Data), "2")
}

func trims(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 1)
	register(t, p, "fast", journal.Begin)
	register(t, p, "slow", journal.Begin)
	all := numbers(6)
	for i := range all {
		all[i] += " is longer than the retention"
	}
	k.append(t, k.last(), all...)
	records := read(t, p, 0, 6)
	must(t, p.Commit(ctx(t), "fast", journal.Position{Seq: records[5].Seq, Count: 6}))
	k.Trim(t, k.log)
	equal(t, "texts before the slow reader reads", fmt.Sprint(texts(read(t, p, 0, 6))), fmt.Sprint(all))
	must(t, p.Commit(ctx(t), "slow", journal.Position{Seq: records[3].Seq, Count: 4}))
	k.Trim(t, k.log)
	s, err := p.Stats(ctx(t))
	must(t, err)
	equal(t, "the first record kept", s.First, records[4].Seq)
	must(t, p.Commit(ctx(t), "slow", journal.Position{Seq: records[5].Seq, Count: 6}))
	k.Trim(t, k.log)
	k.reopen(t)
	p = k.log.Partition(k.last(), 1)
	s, err = p.Stats(ctx(t))
	must(t, err)
	equal(t, "records kept", s.Records, 0)
	equal(t, "the newest record", s.Last, records[5].Seq)
	k.append(t, k.last(), "new")
	next := read(t, p, records[5].Seq, 1)[0]
	equal(t, "record", string(next.Data), "new")
	if next.Seq <= records[5].Seq {
		t.Fatalf("the number %d is given again", next.Seq)
	}
	equal(t, "the first record of a read from the begin", read(t, p, 0, 1)[0].Seq, next.Seq)
}

func stats(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 1)
	s, err := p.Stats(ctx(t))
	must(t, err)
	if s.ID == "" || s.First != s.Last+1 || s.Records != 0 || !s.OldestAt.IsZero() || s.Broken != nil {
		t.Fatalf("empty: %+v", s)
	}
	register(t, p, "reader", journal.Begin)
	k.append(t, k.last(), numbers(4)...)
	records := read(t, p, 0, 4)
	at := journal.Position{Seq: records[1].Seq, Count: 2}
	must(t, p.Commit(ctx(t), "reader", at))
	id := s.ID
	s, err = p.Stats(ctx(t))
	must(t, err)
	equal(t, "id", s.ID, id)
	equal(t, "first", s.First, records[0].Seq)
	equal(t, "last", s.Last, records[3].Seq)
	equal(t, "readers", len(s.Readers), 1)
	r := s.Readers[0]
	equal(t, "position", r.Position, at)
	equal(t, "lag", r.Lag, 2)
	if !r.OldestAt.Equal(records[2].At) {
		t.Errorf("the oldest unread record is of %v, want %v", r.OldestAt, records[2].At)
	}
	skipper, ok := p.(interface{ Skipped(string, uint64) })
	if !ok {
		return
	}
	skipper.Skipped("reader", records[2].Seq)
	s, err = p.Stats(ctx(t))
	must(t, err)
	r = s.Readers[0]
	equal(t, "position after skipped records", r.Position, at)
	equal(t, "lag after skipped records", r.Lag, 1)
	if !r.OldestAt.Equal(records[3].At) {
		t.Errorf("the oldest unread record is of %v, want %v", r.OldestAt, records[3].At)
	}
}

// statsAfterAppend asks as an erasure does: its mark must not be below its record.
func statsAfterAppend(t *testing.T, k *kit) {
	p := k.log.Partition(k.last(), 0)
	s, err := p.Stats(ctx(t))
	must(t, err)
	for range 10 {
		before := s.Last
		k.append(t, k.last(), "a")
		s, err = p.Stats(ctx(t))
		must(t, err)
		if s.Last <= before {
			t.Fatalf("the newest record after an append is %d, as before", s.Last)
		}
	}
}

// takeover has two owners of a partition read at once, as after a pause of the first.
func takeover(t *testing.T, k *kit) {
	register(t, k.log.Partition(0, 1), "reader", journal.Begin)
	k.append(t, 0, numbers(10)...)
	first := k.log.Partition(0, 1)
	some := read(t, first, 0, 4)
	must(t, first.Commit(ctx(t), "reader", journal.Position{Seq: some[3].Seq, Count: 4}))
	read(t, first, some[3].Seq, 2) // in the middle of a batch

	other := k.open(t) // another node
	defer func() { _ = other.Close(ctx(t)) }()
	second := other.Partition(0, 2)
	at := register(t, second, "reader", journal.Begin)
	equal(t, "position of the second owner", at, journal.Position{Seq: some[3].Seq, Count: 4})
	equal(t, "records of the second owner", fmt.Sprint(texts(read(t, second, at.Seq, 6))), fmt.Sprint(numbers(10)[4:]))
	err := first.Commit(ctx(t), "reader", journal.Position{Seq: some[3].Seq + 2, Count: 6})
	equal(t, "kind of the commit of the first owner", fault.KindOf(err), fault.Conflict)
	err = first.Unregister(ctx(t), "reader")
	equal(t, "kind of the removal by the first owner", fault.KindOf(err), fault.Conflict)
	must(t, second.Commit(ctx(t), "reader", journal.Position{Seq: some[3].Seq + 2, Count: 6}))
}

func redelivery(t *testing.T, k *kit) {
	first := k.log.Partition(0, 1)
	register(t, first, "reader", journal.Begin)
	k.append(t, 0, numbers(3)...)
	records := read(t, first, 0, 3)
	second := k.log.Partition(0, 2)
	at := register(t, second, "reader", journal.Begin)
	err := first.Commit(ctx(t), "reader", journal.Position{Seq: records[2].Seq, Count: 3})
	equal(t, "kind of the commit", fault.KindOf(err), fault.Conflict)
	equal(t, "records that come again", fmt.Sprint(texts(read(t, second, at.Seq, 3))), fmt.Sprint(numbers(3)))
	must(t, second.Commit(ctx(t), "reader", journal.Position{Seq: records[2].Seq, Count: 3}))
	without := k.log.Partition(0, 0) // no lease is needed to read
	equal(t, "records that are read without a lease", fmt.Sprint(texts(read(t, without, 0, 3))), fmt.Sprint(numbers(3)))
	must(t, without.Wait(ctx(t), 0))
	s, err := without.Stats(ctx(t))
	must(t, err)
	equal(t, "the newest record without a lease", s.Last, records[2].Seq)
	third := k.log.Partition(0, 3)
	equal(t, "position of the third owner", register(t, third, "reader", journal.Begin).Count, 3)
}
