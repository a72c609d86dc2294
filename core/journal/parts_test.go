package journal

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/format"
)

// TestLedgerListsEachRecordOnce adds random ranges to a ledger and their numbers to a set.
func TestLedgerListsEachRecordOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var l ledger
		known := map[uint64]time.Time{} // and when its range was found first
		first := uint64(1)
		for step := range 12 {
			r := DamagedRange{First: first + uint64(rnd.IntN(60)), Bytes: step, Found: time.UnixMicro(int64(step))}
			r.Last = r.First + uint64(rnd.IntN(8))
			var want uint64
			for seq := r.First; seq <= r.Last; seq++ {
				if _, ok := known[seq]; !ok {
					want++
					known[seq] = r.Found
				}
			}
			if added := l.add(r); added != want {
				t.Fatalf("seed %d: %d to %d added %d records, want %d", seed, r.First, r.Last, added, want)
			}

			if rnd.IntN(4) == 0 {
				first += uint64(rnd.IntN(10))
			}
			listed := map[uint64]bool{}
			before := uint64(0)
			for _, r := range l.list(first) {
				if r.First <= before || r.Last < max(r.First, first) {
					t.Fatalf("seed %d: range %d to %d is listed behind %d, the first record is %d", seed, r.First, r.Last, before, first)
				}
				before = r.Last
				for seq := r.First; seq <= r.Last; seq++ {
					listed[seq] = true
					if at, ok := known[seq]; !ok || r.Found.After(at) {
						t.Fatalf("seed %d: record %d was found at %s (%v), its range says %s", seed, seq, at, ok, r.Found)
					}
				}
			}
			for seq := range known {
				if seq < first && !listed[seq] {
					delete(known, seq)
				} else if !listed[seq] {
					t.Fatalf("seed %d: the damaged record %d is not listed", seed, seq)
				}
			}
		}
	}
}

func TestLedgerKeepsTheLargestSizeOfARange(t *testing.T) {
	t.Parallel()
	var l ledger
	for _, bytes := range []int{10, 30, 20} {
		l.add(DamagedRange{First: 5, Last: 6, Bytes: bytes})
	}
	if got := l.list(1); len(got) != 1 || got[0].Bytes != 30 {
		t.Errorf("got %+v, want one range of 30 bytes", got)
	}
}

// A disk that loses every second page must not fill the memory.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	var l ledger
	for i := range uint64(maxRanges + 5) {
		l.add(DamagedRange{First: 2 * i, Last: 2 * i})
	}
	if got := l.list(0); len(got) != maxRanges || got[maxRanges-1].First != 2*(maxRanges-1) {
		t.Errorf("%d ranges are listed, want the first %d", len(got), maxRanges)
	}

	for i := range uint64(maxKept + 5) {
		l.keep([]*format.Damage{{First: i, Last: i, Bytes: 1}})
	}
	all := format.Damage{First: 0, Last: 1000}
	if l.recall(&all); all.Bytes != maxKept {
		t.Errorf("data of %d ranges is kept, want %d", all.Bytes, maxKept)
	}
	l.list(10) // 5 to 9 are trimmed
	all = format.Damage{First: 0, Last: 1000}
	if l.recall(&all); all.Bytes != maxKept-5 {
		t.Errorf("data of %d ranges is kept, want %d", all.Bytes, maxKept-5)
	}
}

// A range that the new file lacks has what the replaced file held of it.
func TestLedgerRecallsWhatAReplacedFileHeld(t *testing.T) {
	t.Parallel()
	cause, at := errors.New("checksum"), time.UnixMicro(7)
	var l ledger
	l.keep([]*format.Damage{
		{First: 1, Last: 3, Bytes: 100, Raw: []byte("before")},
		{First: 4, Last: 6, Bytes: 10, Raw: []byte("a"), At: at, Cause: cause, Saved: []format.Block{{Seq: 4}}},
		{First: 8, Last: 9, Bytes: 5, Raw: []byte("b"), At: at.Add(1), Cause: cause},
		{First: 10, Last: 12, Bytes: 100, Raw: []byte("behind")},
	})
	for _, c := range []struct {
		first, last uint64
		bytes       int
		raw         string
		saved       int
	}{
		{4, 9, 16, "ab", 1},
		{6, 6, 11, "a", 1},
		{4, 4, 11, "a", 1},
		{7, 7, 1, "", 0},
		{7, 8, 6, "b", 0},
		{9, 9, 6, "b", 0},
	} {
		d := format.Damage{First: c.first, Last: c.last, Bytes: 1, Cause: format.ErrMissing}
		l.recall(&d)
		if d.Bytes != c.bytes || string(d.Raw) != c.raw || len(d.Saved) != c.saved {
			t.Errorf("%d to %d: %d bytes, %q, %d blocks; want %d, %q, %d", c.first, c.last, d.Bytes, d.Raw, len(d.Saved), c.bytes, c.raw, c.saved)
		}
		switch recalled := c.raw != ""; {
		case recalled && (!errors.Is(d.Cause, cause) || d.At.IsZero()):
			t.Errorf("%d to %d: cause %v at %s, want that of the replaced file", c.first, c.last, d.Cause, d.At)
		case !recalled && (!errors.Is(d.Cause, format.ErrMissing) || !d.At.IsZero()):
			t.Errorf("%d to %d: cause %v at %s, want its own", c.first, c.last, d.Cause, d.At)
		}
		if c.first == 4 && c.last == 9 && !d.At.Equal(at) {
			t.Errorf("%d to %d: at %s, want the oldest", c.first, c.last, d.At)
		}
	}
	dated := format.Damage{First: 4, Last: 4, At: at.Add(-5)}
	if l.recall(&dated); !dated.At.Equal(at.Add(-5)) {
		t.Errorf("the time %s replaced a known one", dated.At)
	}
}

func TestDamagedErrorNamesRangeAndCause(t *testing.T) {
	t.Parallel()
	e := &DamagedError{First: 3, Last: 7}
	if got := e.Error(); got != "records 3 to 7 are lost" {
		t.Error(got)
	}
	e.cause = errors.New("page of zeros")
	if got := e.Error(); !strings.Contains(got, "records 3 to 7") || !strings.Contains(got, "page of zeros") || !errors.Is(e, e.cause) {
		t.Error(got)
	}
}

// TestFirstNeeded checks which records a reader may still ask for after the oldest block was lost.
func TestFirstNeeded(t *testing.T) {
	t.Parallel()
	at := func(seq uint64, dropped int64) cursor { return cursor{position: Position{Seq: seq}, dropped: dropped} }
	for _, c := range []struct {
		readers readers
		want    uint64
	}{
		{nil, 10},
		{readers{"a": at(20, 0)}, 10},
		{readers{"a": at(20, 0), "b": at(4, 0)}, 5},
		{readers{"a": at(4, 1)}, 10}, // its records were dropped, not lost
		{readers{"a": at(9, 0)}, 10},
	} {
		if got := c.readers.firstNeeded(10); got != c.want {
			t.Errorf("%+v: %d, want %d", c.readers, got, c.want)
		}
	}
}

func TestEnoughSpace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, reusable, least int64
		want                  bool
	}{
		{0, 0, 0, true}, // the guard is off
		{800, 0, 800, true},
		{799, 0, 800, false},
		{799, 1, 800, true},
		{100, 700, 800, true},
		{100, 699, 800, false},
		{99, 5000, 800, false}, // the write-ahead log needs some on the disk itself
	} {
		if got := enough(c.free, c.reusable, c.least); got != c.want {
			t.Errorf("%d free, %d in the file, %d wanted: %v", c.free, c.reusable, c.least, got)
		}
	}
}

// TestTailKeepsTheNewestBytes adds blocks of random sizes and reads after each number.
func TestTailKeepsTheNewestBytes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		l := tail{limit: 300}
		var blocks []format.Block
		next := uint64(1)
		for range 20 {
			records := make([][]byte, 1+rnd.IntN(4))
			for i := range records {
				records[i] = make([]byte, rnd.IntN(60))
			}
			b := format.NewBlock(next, 0, 0, records)
			next = b.Last() + 1
			l.add(b)
			blocks = append(blocks, b)

			// The newest blocks whose sizes are within the limit are kept.
			bytes := 0
			from := len(blocks)
			for from > 0 && bytes+len(blocks[from-1].Data) <= l.limit {
				from--
				bytes += len(blocks[from].Data)
			}
			kept := blocks[from:]
			if l.bytes != bytes || len(l.blocks) != len(kept) {
				t.Fatalf("seed %d: %d blocks with %d bytes, want %d with %d", seed, len(l.blocks), l.bytes, len(kept), bytes)
			}
			for after := range next {
				p := selector{after: after, maxRecords: 1000, maxBytes: 1 << 20}
				inTail := len(kept) > 0 && after+1 >= kept[0].Seq
				if got := l.selectFrom(&p); got != inTail {
					t.Fatalf("seed %d: records after %d are in the tail: %v, want %v", seed, after, got, inTail)
				}
				var seqs []uint64
				for _, r := range p.records() {
					seqs = append(seqs, r.Seq)
				}
				var want []uint64
				for seq := after + 1; inTail && seq < next; seq++ {
					want = append(want, seq)
				}
				if !slices.Equal(seqs, want) {
					t.Fatalf("seed %d: after %d: %v, want %v", seed, after, seqs, want)
				}
			}
		}
	}
}

// TestTrimDue checks which rounds of retention look into the file.
func TestTrimDue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, drop := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.MaxBytes, cfg.MaxAge, cfg.MinFreeBytes, cfg.TrimInterval, cfg.DropUnread = 10, 0, 0, time.Hour, drop
		j, err := open(cfg, t.TempDir(), zap.NewNop(), nil, hooks{})
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string, want bool) {
			t.Helper()
			if got := j.trimDue(); got != want {
				t.Errorf("drop_unread %v, %s: due %v", drop, when, got)
			}
		}
		succeed := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}

		check("without records", false)
		_, err = j.Register(ctx, "reader", Begin)
		succeed(err)
		for range 3 {
			check("within the bounds", false)
			_, err = j.Append(ctx, make([]byte, 4))
			succeed(err)
		}
		check("too much that a reader needs", drop)
		succeed(j.Commit(ctx, "reader", Position{Seq: 1}))
		check("too much that is read", true)
		_, err = j.Trim(ctx)
		succeed(err)
		check("after a round", false)

		// A search for damage that begins behind what retention has removed meanwhile finds none.
		for _, after := range []uint64{0, j.newest(), j.newest() + 1} {
			if err := j.locate(ctx, after, format.ErrMissing); err != nil {
				t.Errorf("damage after record %d: %v", after, err)
			}
		}
		succeed(j.Close(ctx))
		if err := j.enter(); !errors.Is(err, errClosing) {
			t.Errorf("a closed journal: %v", err)
		}
	}
}

// TestProbeIsDue checks how long a probe of a full disk waits.
func TestProbeIsDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wrote                bool
		need, free, reusable int64
		wantProbe, wantGone  bool
	}{
		{false, 0, 0, 0, false, true},
		{true, 0, 0, 0, true, false},
		{true, 100, 100, 0, true, false},
		{true, 100, 40, 60, true, false},
		{true, 100, 40, 59, false, false},
		{true, 100, 0, 99, false, false},
	} {
		h := health{log: zap.NewNop(), index: &index{free: c.reusable}, space: func(string) (int64, int64, error) { return c.free, 1 << 40, nil }}
		r := &refusal{fault: errFull, wrote: c.wrote, need: c.need}
		h.refuse(r)
		probe := h.check()
		if (probe == r) != c.wantProbe || probe != nil && probe != r || (h.refusal() == nil) != c.wantGone {
			t.Errorf("%+v: probe %v, refusal %v", c, probe, h.refusal())
		}
	}

	// A group that did not fit a full disk is the measure.
	h := health{log: zap.NewNop(), index: &index{}}
	h.recordWriteFailure(errFull, 50)
	full := h.state.Load()
	h.recordWriteFailure(errUnavailable, 50)
	if broken := h.state.Load(); full.need != 100 || !full.wrote || broken.need != 0 || !broken.wrote {
		t.Errorf("full: %+v, broken: %+v", full, broken)
	}
}

// TestQueueCountsWhatWaits compares a queue with a plain list of requests.
func TestQueueCountsWhatWaits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		q := newQueue(6, 100)
		var model []*request
		sizes := func(list []*request) (bytes, urgent int) {
			for _, r := range list {
				bytes += len(r.data)
				if !r.lazy {
					urgent++
				}
			}
			return bytes, urgent
		}
		for range 60 {
			switch n := rnd.IntN(10); {
			case n < 5:
				r := &request{data: make([]byte, rnd.IntN(60))}
				if rnd.IntN(3) == 0 {
					r.job, r.data, r.lazy = &job{}, nil, rnd.IntN(2) == 0
				}
				bytes, _ := sizes(model)
				fits := r.job != nil || len(model) == 0 || len(model) < 6 && bytes+len(r.data) <= 100
				if err := q.enqueue(r); (err == nil) != fits {
					t.Fatalf("seed %d: %d bytes behind %d requests with %d: %v", seed, len(r.data), len(model), bytes, err)
				}
				if fits {
					model = append(model, r)
				}
			case n < 7 && len(model) > 0:
				i := rnd.IntN(len(model))
				r := model[i]
				model = slices.Delete(slices.Clone(model), i, i+1)
				if !q.withdraw(r) || q.withdraw(r) {
					t.Fatalf("seed %d: a request that waits is withdrawn once", seed)
				}
			default:
				most, bytes, taken := 1+rnd.IntN(4), rnd.IntN(100), 0
				for size := 0; taken < len(model) && (taken == 0 || taken < most && size+len(model[taken].data) <= bytes); taken++ {
					size += len(model[taken].data)
				}
				got := q.takeGroup(nil, most, bytes)
				if !slices.Equal(got, model[:taken]) {
					t.Fatalf("seed %d: took %d requests, want %d", seed, len(got), taken)
				}
				model = slices.Clone(model[taken:])
			}
			bytes, urgent := sizes(model)
			if q.bytes != bytes || q.urgent != urgent || !slices.Equal(q.waiting, model) {
				t.Fatalf("seed %d: %d requests, %d bytes, %d urgent; want %d, %d, %d", seed, len(q.waiting), q.bytes, q.urgent, len(model), bytes, urgent)
			}
			if urgent > 0 && !q.wait() {
				t.Fatalf("seed %d: an open queue has ended", seed)
			}
		}
		q.close()
		if err := q.enqueue(&request{}); !errors.Is(err, errClosing) {
			t.Fatalf("a closed queue: %v", err)
		}
		for len(model) > 0 {
			if !q.wait() {
				t.Fatalf("seed %d: the queue ends before %d requests", seed, len(model))
			}
			model = model[len(q.takeGroup(nil, 2, 100)):]
		}
		if q.wait() {
			t.Fatalf("seed %d: a closed queue without requests has not ended", seed)
		}
	}
}
