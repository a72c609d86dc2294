package journaltest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

func startsAt(t *testing.T, k *kit) {
	equal(t, "the begin of an empty journal", k.register(t, "first", journal.Begin), journal.Position{})
	equal(t, "the end of an empty journal", k.register(t, "second", journal.End), journal.Position{})
	last := k.fill(t, 5)
	equal(t, "the begin", k.register(t, "third", journal.Begin), journal.Position{})
	equal(t, "the end", k.register(t, "fourth", journal.End), journal.Position{Seq: last})
	_, err := k.Register(ctx(t), "", journal.Begin)
	equal(t, "kind of a reader without a name", fault.KindOf(err), fault.Invalid)
}

func resumes(t *testing.T, k *kit) {
	k.register(t, "reader", journal.Begin)
	k.fill(t, 5)
	want := journal.Position{Seq: 2, Index: 7, Count: 1<<40 + 1}
	k.commit(t, "reader", want)
	equal(t, "position", k.register(t, "reader", journal.Begin), want)
	equal(t, "position, whatever the start", k.register(t, "reader", journal.End), want)
}

func neverBackwards(t *testing.T, k *kit) {
	k.register(t, "reader", journal.Begin)
	k.fill(t, 5)
	at := journal.Position{Seq: 3, Index: 4, Count: 10}
	k.commit(t, "reader", at)
	k.commit(t, "reader", at) // the same again is fine
	for _, p := range []journal.Position{
		{Seq: 2, Index: 9, Count: 10},
		{Seq: 3, Index: 3, Count: 10},
		{Seq: 3, Index: 4, Count: 9},
		{Seq: 4, Index: 0, Count: 9},
		{},
	} {
		err := k.Commit(ctx(t), "reader", p)
		equal(t, fmt.Sprintf("kind of the error of %v after %v", p, at), fault.KindOf(err), fault.Conflict)
	}
	equal(t, "position", k.register(t, "reader", journal.Begin), at)
	k.commit(t, "reader", journal.Position{Seq: 3, Index: 5, Count: 10})
	k.commit(t, "reader", journal.Position{Seq: 5, Count: 12})
}

func neverAhead(t *testing.T, k *kit) {
	k.register(t, "reader", journal.Begin)
	last := k.fill(t, 2)
	for _, p := range []journal.Position{{Seq: last + 1}, {Seq: last, Index: 1}, {Seq: 1 << 63}} {
		err := k.Commit(ctx(t), "reader", p)
		equal(t, fmt.Sprintf("kind of the error of %v", p), fault.KindOf(err), fault.Invalid)
	}
	equal(t, "position", k.register(t, "reader", journal.Begin), journal.Position{})
}

func cursorSurvives(t *testing.T, k *kit) {
	k.register(t, "one", journal.Begin)
	k.register(t, "two", journal.Begin)
	k.fill(t, 5)
	k.commit(t, "one", journal.Position{Seq: 2, Index: 3, Count: 20})
	k.commit(t, "one", journal.Position{Seq: 4, Index: 1, Count: 40})
	k.reopen(t)
	equal(t, "one", k.register(t, "one", journal.End), journal.Position{Seq: 4, Index: 1, Count: 40})
	equal(t, "two", k.register(t, "two", journal.End), journal.Position{})
}

func unknownReader(t *testing.T, k *kit) {
	k.fill(t, 1)
	err := k.Commit(ctx(t), "nobody", journal.Position{Seq: 1})
	equal(t, "kind", fault.KindOf(err), fault.NotFound)
	must(t, k.Unregister(ctx(t), "nobody"))
}

func unregister(t *testing.T, k *kit) {
	k.register(t, "reader", journal.Begin)
	last := k.fill(t, 3)
	k.commit(t, "reader", journal.Position{Seq: 2, Count: 2})
	must(t, k.Unregister(ctx(t), "reader"))
	equal(t, "readers", len(k.stats(t).Readers), 0)
	equal(t, "position", k.register(t, "reader", journal.End), journal.Position{Seq: last})
	must(t, k.Unregister(ctx(t), "reader"))
	k.reopen(t)
	equal(t, "readers after reopening", len(k.stats(t).Readers), 0)
}

func independent(t *testing.T, k *kit) {
	k.register(t, "fast", journal.Begin)
	k.register(t, "slow", journal.Begin)
	last := k.fill(t, 5)
	k.commit(t, "fast", journal.Position{Seq: last, Count: 5})
	equal(t, "slow", k.register(t, "slow", journal.Begin), journal.Position{})
	must(t, k.Unregister(ctx(t), "fast"))
	equal(t, "slow, when fast has gone", k.register(t, "slow", journal.Begin), journal.Position{})
}

func trimKeeps(t *testing.T, k *kit) {
	k.register(t, "fast", journal.Begin)
	k.register(t, "slow", journal.Begin)
	last := k.fill(t, 10)
	k.commit(t, "fast", journal.Position{Seq: last})
	k.commit(t, "slow", journal.Position{Seq: 4, Index: 2})
	k.trim(t)
	records := k.read(t, 4, 100, 1<<20)
	equal(t, "records after the slow reader's position", len(records), 6)
	for i, r := range records {
		equal(t, "record", string(r.Data), fmt.Sprint(4+i))
	}
	k.register(t, "new", journal.Begin)
	k.commit(t, "slow", journal.Position{Seq: last})
	k.trim(t)
	equal(t, "records that the new reader needs", len(k.read(t, 4, 100, 1<<20)), 6)
	for _, r := range k.stats(t).Readers {
		equal(t, r.Name+" dropped", r.Dropped, 0)
	}
}

func trimRemoves(t *testing.T, k *kit) {
	k.register(t, "one", journal.Begin)
	k.register(t, "two", journal.Begin)
	last := k.fill(t, 100)
	equal(t, "removed while nobody has read", k.trim(t), 0)
	k.commit(t, "one", journal.Position{Seq: last})
	equal(t, "removed while one has not read", k.trim(t), 0)
	k.commit(t, "two", journal.Position{Seq: last})
	before := k.stats(t).Records
	removed := k.trim(t)
	s := k.stats(t)
	equal(t, "records", s.Records, before-removed)
	if s.Records > 10 {
		t.Errorf("%d of 100 records are still there", s.Records)
	}
	equal(t, "removed again", k.trim(t), 0)
	records := k.all(t)
	equal(t, "records that can be read", int64(len(records)), s.Records)
	if len(records) > 0 {
		equal(t, "the first", records[0].Seq, s.First)
	}
	equal(t, "the begin", k.register(t, "late", journal.Begin).Seq, s.First-1)
}

func neverTwice(t *testing.T, k *kit) {
	last := k.fill(t, 3)
	for range 3 {
		k.trim(t)
		k.reopen(t)
		next := k.append(t, "again")
		if next <= last {
			t.Fatalf("number %d was given before, %d was the last", next, last)
		}
		last = next
		k.reopen(t)
		k.trim(t)
		equal(t, "last", k.stats(t).Last, last)
	}
}

func stats(t *testing.T, k *kit) {
	s := k.stats(t)
	equal(t, "records of a new journal", s.Records, 0)
	equal(t, "first of a new journal", s.First, 1)
	equal(t, "last of a new journal", s.Last, 0)
	equal(t, "age of a new journal", s.OldestAt.IsZero(), true)
	equal(t, "broken", s.Broken, nil)
	k.register(t, "b", journal.Begin)
	for _, data := range []string{"1", "22", "333", "4444"} {
		k.append(t, data)
	}
	k.register(t, "a", journal.End)
	k.commit(t, "b", journal.Position{Seq: 2, Index: 1, Count: 3})
	for _, when := range []string{"", " after reopening"} {
		s = k.stats(t)
		equal(t, "records"+when, s.Records, 4)
		equal(t, "bytes"+when, s.Bytes, 10)
		equal(t, "first"+when, s.First, 1)
		equal(t, "last"+when, s.Last, 4)
		equal(t, "readers"+when, len(s.Readers), 2)
		a, b := s.Readers[0], s.Readers[1]
		equal(t, "a"+when, a, journal.ReaderStats{Name: "a", Position: journal.Position{Seq: 4}})
		equal(t, "b's position"+when, b.Position, journal.Position{Seq: 2, Index: 1, Count: 3})
		equal(t, "b's lag"+when, b.Lag, 2)
		equal(t, "b's bytes"+when, b.Bytes, 7)
		equal(t, "b's oldest"+when, b.OldestAt.Equal(k.read(t, 2, 1, 1)[0].At), true)
		if s.FileBytes <= 0 || s.OldestAt.IsZero() {
			t.Errorf("file bytes %d, oldest %v", s.FileBytes, s.OldestAt)
		}
		k.reopen(t)
	}
}

func closed(t *testing.T, k *kit) {
	k.register(t, "reader", journal.Begin)
	k.fill(t, 1)
	must(t, k.Close(ctx(t)))
	must(t, k.Close(ctx(t)))
	_, appendErr := k.Append(ctx(t), []byte("late"))
	_, readErr := k.Read(ctx(t), 0, 1, 1)
	_, registerErr := k.Register(ctx(t), "late", journal.Begin)
	_, statsErr := k.Stats(ctx(t))
	for what, err := range map[string]error{
		"append": appendErr, "read": readErr, "register": registerErr, "stats": statsErr,
		"commit": k.Commit(ctx(t), "reader", journal.Position{Seq: 1}),
		"wait":   k.Wait(ctx(t), 1),
	} {
		equal(t, "kind of the error of "+what, fault.KindOf(err), fault.Unavailable)
		if fault.From(err).RetryAfter <= 0 {
			t.Errorf("%s does not say when to come back", what)
		}
	}
	k.Journal = k.open(t, k.dir)
	equal(t, "records", len(k.all(t)), 1)
}

func closeEndsWait(t *testing.T, k *kit) {
	ended := make(chan error, 1)
	go func() { ended <- k.Wait(ctx(t), 0) }()
	must(t, k.Close(ctx(t)))
	if err := <-ended; err == nil || errors.Is(err, t.Context().Err()) {
		t.Fatalf("got %v, want an error of the journal", err)
	}
}
