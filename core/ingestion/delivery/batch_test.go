package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/sdk"
)

// TestBatchesOfLanes splits the events of 40 persons: each event is in one batch, the events of a person are in one lane and in
// order, and no batch is larger than it may be.
func TestBatchesOfLanes(t *testing.T) {
	t.Parallel()
	var events []sdk.Event
	var seqs []uint64
	for i := range 200 {
		events = append(events, sdk.Event{DistinctID: fmt.Sprint("person ", i%40), Name: fmt.Sprint(i), ProjectID: 1})
		seqs = append(seqs, uint64(1000+i))
	}
	for _, c := range []struct {
		ordering sdk.Ordering
		lanes    int
		mixed    bool // a batch has all persons
		batches  int
	}{
		{sdk.OrderNone, 4, true, 4}, {sdk.OrderTotal, 4, true, 4}, {sdk.OrderPerKey, 1, true, 4}, {sdk.OrderPerKey, 4, false, 4}, {sdk.OrderPerKey, 2, false, 4},
	} {
		batches := splitBatches(&filter.Filter{}, events, seqs, batchSize{events: 50, bytes: 1 << 20}, c.ordering, c.lanes)
		if len(batches) < c.batches {
			t.Errorf("%+v: %d batches", c, len(batches))
		}
		seen, last, batchOf := 0, map[string]uint64{}, map[string]uint64{}
		mixed := false
		for n, b := range batches {
			if b.count > 50 || b.count != len(b.records) || len(b.seqs) != b.count {
				t.Fatalf("%+v: a batch of %d events", c, b.count)
			}
			for i, ev := range b.events {
				seen++
				if ev.Name != fmt.Sprint(b.seqs[i]-1000) || last[ev.DistinctID] >= b.seqs[i] {
					t.Fatalf("%+v: event %s is record %d, after %d", c, ev.Name, b.seqs[i], last[ev.DistinctID])
				}
				last[ev.DistinctID] = b.seqs[i]
				if keys, ok := batchOf[ev.DistinctID]; ok && keys != keyGroup(&b.events[i])%uint64(c.lanes) {
					t.Fatal("the lane of a person changes")
				}
				batchOf[ev.DistinctID] = keyGroup(&b.events[i]) % uint64(c.lanes)
				if b.keys&(1<<keyGroup(&b.events[i])) == 0 {
					t.Fatalf("batch %d lacks a key group", n)
				}
			}
			lanes := map[uint64]bool{}
			for i := range b.events {
				lanes[keyGroup(&b.events[i])%max(2, uint64(c.lanes))] = true
			}
			mixed = mixed || len(lanes) > 1
		}
		if seen != len(events) || mixed != c.mixed {
			t.Errorf("%+v: %d events in %d batches, lanes mixed: %t", c, seen, len(batches), mixed)
		}
	}
	if few := splitBatches(&filter.Filter{}, events[:50], seqs[:50], batchSize{events: 50, bytes: 1 << 20}, sdk.OrderPerKey, 4); len(few) != 1 {
		t.Errorf("%d batches of events that fit into one", len(few))
	}
}

func TestBatchesAreCutByBytes(t *testing.T) {
	t.Parallel()
	event := func(size int) sdk.Event { return sdk.Event{Properties: []byte(strings.Repeat("x", size))} }
	overhead := batchSize{events: 10, bytes: 1}
	if n := overhead.count([]sdk.Event{event(5000), event(1)}); n != 1 {
		t.Errorf("a batch of %d events, want the large one alone", n)
	}
	for _, c := range []struct{ events, bytes, want int }{{10, 1 << 20, 3}, {2, 1 << 20, 2}, {10, 1<<20 + 1<<19, 3}, {10, 1 << 19, 1}} {
		s := batchSize{events: c.events, bytes: c.bytes}
		if n := s.count([]sdk.Event{event(300 << 10), event(300 << 10), event(300 << 10)}); n != c.want {
			t.Errorf("%+v: %d events", c, n)
		}
	}
	if n := (batchSize{events: 10, bytes: 10}).count(nil); n != 0 {
		t.Errorf("%d of no events", n)
	}
}

// TestIDsOfBatches: an id is a ULID that begins with the arrival of the first event, and differs with anything else but the attempt.
func TestIDsOfBatches(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1469918176385) // 01ARYZ6S41, of the specification of ULIDs
	make := func(change func(b *batch)) *batch {
		b := testBatch("a", "b")
		for i := range b.records {
			b.records[i].ReceivedAt = at
		}
		change(b)
		return b
	}
	same := make(func(*batch) {})
	id := same.part("sink", 0, 2, 1).ID
	if !strings.HasPrefix(id, "01ARYZ6S41") || len(id) != 26 || strings.Trim(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		t.Errorf("the id is %q", id)
	}
	if again := make(func(*batch) {}).part("sink", 0, 2, 7); again.ID != id || again.Attempt != 7 || again.FirstSeq != 1 || again.LastSeq != 2 {
		t.Errorf("another attempt is %+v", again)
	}
	others := map[string]string{
		"another instance": same.part("sink@1", 0, 2, 1).ID, "the first event": same.part("sink", 0, 1, 1).ID, "the second": same.part("sink", 1, 2, 1).ID,
		"other numbers":     make(func(b *batch) { b.firstSeq = 5 }).part("sink", 0, 2, 1).ID,
		"another event":     make(func(b *batch) { b.records[1].UUID[3]++ }).part("sink", 0, 2, 1).ID,
		"another last byte": make(func(b *batch) { b.records[1].UUID[15]++ }).part("sink", 0, 2, 1).ID,
		"another arrival":   make(func(b *batch) { b.records[0].ReceivedAt = at.Add(time.Millisecond) }).part("sink", 0, 2, 1).ID,
	}
	seen := map[string]string{id: "the batch itself"}
	for name, other := range others {
		if twin := seen[other]; twin != "" || len(other) != 26 {
			t.Errorf("%s has the id %q of %s", name, other, twin)
		}
		seen[other] = name
	}
}

func TestBatchesStagedInSessions(t *testing.T) {
	t.Parallel()
	b := testBatch("a", "b", "c")
	b.markStaged(7, 3)
	b.markStaged(7, 2)
	if s := b.state; !s.staged || s.splitSession || s.stagedTo != 3 || s.session != 7 {
		t.Errorf("%+v", s)
	}
	if b.markStaged(8, 3); !b.state.splitSession || b.state.session != 8 {
		t.Errorf("%+v", b.state)
	}

	b.release()
	if b.events != nil || b.records != nil || b.seqs != nil || len(b.ids) != 3 || b.ids[1] == b.ids[2] || b.ids[1] != uuidBytes("0190a5a2-7b3c-7000-8000-000000000001") {
		t.Errorf("released: %+v", b)
	}
	committed := testBatch("a")
	if committed.release(); committed.ids != nil || committed.events != nil {
		t.Errorf("released: %+v", committed)
	}
}
