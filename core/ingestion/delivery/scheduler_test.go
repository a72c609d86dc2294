package delivery

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// testReader returns a reader whose cursor is committed to no journal.
func testReader(historical bool) *sinkReader {
	return &sinkReader{historical: historical, commit: reader.NewCommitter(nil, "sink/test", journal.Position{}, zap.NewNop())}
}

// testChunk returns a chunk that ends at seq, with a batch per key group set.
func testChunk(seq uint64, keys ...uint64) *chunk {
	c := &chunk{end: journal.Position{Seq: seq}}
	for _, k := range keys {
		c.batches = append(c.batches, &batch{count: 2, keys: k})
	}
	return c
}

// dispatched returns the first sequence numbers of the batches sent now.
func dispatched(s *scheduler, window int) (seqs []uint64) {
	s.dispatch(window, sdk.OrderPerKey, func(b *batch) { seqs = append(seqs, b.firstSeq) })
	return seqs
}

func settle(s *scheduler, b *batch) {
	s.finish(b)
	b.state.settled = true
	s.advance()
}

func TestSchedulerNumbersEventsAndFilteredEvents(t *testing.T) {
	t.Parallel()
	var s scheduler
	s.reset(10)
	r := testReader(false)
	c := testChunk(1, keysNone, keysNone)
	c.filtered = 3
	s.add(r, c)
	s.add(r, testChunk(2, keysNone))
	got := fmt.Sprint(c.batches[0].firstSeq, c.batches[1].firstSeq, c.batches[1].place.through, s.pending[2].firstSeq, s.lastSeq)
	if got != "11 13 17 18 19" {
		t.Errorf("numbers %s, want 11 13 17 18 19", got)
	}
}

func TestSchedulerKeepsTheOrderPerKey(t *testing.T) {
	t.Parallel()
	var s scheduler
	r := testReader(false)
	s.add(r, testChunk(1, 0b01, 0b10, 0b11, 0b100))
	if got := dispatched(&s, 10); !slices.Equal(got, []uint64{1, 3, 7}) {
		t.Fatalf("first %v, want 1 3 7: the third batch shares keys with both before it", got)
	}
	settle(&s, s.pending[0])
	if got := dispatched(&s, 10); got != nil {
		t.Fatalf("then %v, want none: one of the keys is still in flight", got)
	}
	settle(&s, s.pending[0])
	if got := dispatched(&s, 10); !slices.Equal(got, []uint64{5}) {
		t.Fatalf("at last %v, want 5", got)
	}
}

// The batches are made before the sink is opened and declares its order.
func TestSchedulerKeepsTheOrderThatIsDeclaredLater(t *testing.T) {
	t.Parallel()
	for ordering, want := range map[sdk.Ordering]int{sdk.OrderNone: 3, sdk.OrderPerKey: 2, sdk.OrderTotal: 1} {
		events := []sdk.Event{{DistinctID: "ada"}, {DistinctID: "ada"}, {DistinctID: "bob"}}
		var s scheduler
		s.add(testReader(false), &chunk{batches: splitBatches(&filter.Filter{}, events, make([]uint64, len(events)), batchSize{events: 1, bytes: 1000}, sdk.OrderNone, 1)})
		sent := 0
		s.dispatch(4, ordering, func(*batch) { sent++ })
		if sent != want {
			t.Errorf("order %d: sent %d batches together, want %d", ordering, sent, want)
		}
	}
}

func TestSchedulerStaysWithinTheWindow(t *testing.T) {
	t.Parallel()
	var s scheduler
	s.add(testReader(false), testChunk(1, keysNone, keysNone, keysNone))
	if got := dispatched(&s, 2); len(got) != 2 || s.waiting != 1 || s.inFlight != 2 {
		t.Fatalf("sent %v, waiting %d, in flight %d", got, s.waiting, s.inFlight)
	}
	if s.hasRoom(1, false) || !s.hasRoom(2, false) {
		t.Error("there is room while fewer batches wait than the window holds")
	}
	s.waiting, s.pending = 0, make([]*batch, maxOutstanding)
	if s.hasRoom(1, false) || !s.hasRoom(1, true) {
		t.Error("outstanding batches are bounded, but for staged ones")
	}
}

func TestSchedulerLeavesHalfOfTheWindowToLiveEvents(t *testing.T) {
	t.Parallel()
	var s scheduler
	s.add(testReader(true), testChunk(1, keysNone, keysNone, keysNone))
	s.add(testReader(false), testChunk(2, keysNone, keysNone, keysNone))
	if got := dispatched(&s, 4); !slices.Equal(got, []uint64{1, 3, 7, 9}) {
		t.Errorf("sent %v, want two batches of the import and two live ones", got)
	}
	if s.historicalInFlight != 2 {
		t.Errorf("%d batches of the import are in flight", s.historicalInFlight)
	}
}

func TestSchedulerMovesTheCursorBehindSettledBatches(t *testing.T) {
	t.Parallel()
	var s scheduler
	r := testReader(false)
	s.add(r, testChunk(1, keysNone, keysNone))
	s.add(r, testChunk(2)) // every event is filtered
	s.add(r, testChunk(3, keysNone))
	dispatched(&s, 10)
	second := s.pending[1]
	second.state.settled = true
	s.finish(second)
	if _, ok := s.advance(); ok {
		t.Fatal("the cursor moves though the first batch is not settled")
	}
	first := s.pending[0]
	first.state.settled = true
	s.finish(first)
	if through, ok := s.advance(); !ok || through != 4 {
		t.Errorf("settled through %d, %v, want 4", through, ok)
	}
	if got := r.commit.Position(); got != (journal.Position{Seq: 2, Count: 4}) {
		t.Errorf("the cursor is at %+v", got)
	}
	if !s.holds(r) || len(s.pending) != 1 {
		t.Errorf("%d batches pend, want 1", len(s.pending))
	}
}

func TestSchedulerFindsStagedBatches(t *testing.T) {
	t.Parallel()
	var s scheduler
	if s.firstStaged() != nil || s.lastStagedSeq() != 0 || s.find(0) != nil {
		t.Error("there is a staged batch in nothing")
	}
	s.add(testReader(false), testChunk(1, keysNone, keysNone, keysNone))
	dispatched(&s, 2)
	if s.firstStaged() != nil || s.lastStagedSeq() != 0 {
		t.Error("batches in flight count as staged")
	}
	for _, b := range s.pending[:2] {
		s.finish(b)
		b.markStaged(7, b.lastSeq())
		b.records = nil
		b.ids = make([][16]byte, b.count)
	}
	if b := s.firstStaged(); b == nil || b.state.session != 7 || s.lastStagedSeq() != 4 {
		t.Errorf("first %+v, last %d", b, s.lastStagedSeq())
	}
	if b := s.find(3); b != s.pending[1] || s.find(5) != nil {
		t.Error("find returns the staged batch of a sequence number")
	}
	if events, remain := s.settleStaged(2); events != 2 || !remain {
		t.Errorf("settled %d events, remain %v, want 2 and true", events, remain)
	}
	if events, remain := s.settleStaged(4); events != 2 || remain {
		t.Errorf("settled %d more events, remain %v, want 2 and false", events, remain)
	}
}

func TestUpperBoundHidesLaterRecords(t *testing.T) {
	t.Parallel()
	b := reader.NewUpperBound(2)
	log := &reader.Bounded{Log: logOf(1, 2, 3, 4), Bound: b}
	records, err := log.Read(t.Context(), 0, 10, 1<<20)
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v, want 2", len(records), err)
	}
	b.Raise(3)
	b.Raise(1) // never lowers it
	if records, _ = log.Read(t.Context(), 2, 10, 1<<20); len(records) != 1 || records[0].Seq != 3 {
		t.Errorf("after it was raised: %+v", records)
	}
	if err := log.Wait(t.Context(), 2); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Wait(ended, 3); err == nil {
		t.Error("Wait returns at the bound")
	}
}
