package journal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// TestRandomHistories runs random operations on a journal and on a plain list of records. After
// each step, both have the same records, cursors, statistics and metrics.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	seeds, steps := 6, 300
	if testing.Short() {
		seeds, steps = 3, 250
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, uint64(seed))
			for range steps {
				h.step()
				h.checkStats()
			}
			h.reopen()
			h.checkStats()
			h.read(0, 1<<20, 1<<30)
		})
	}
}

// history is a journal and what it should hold.
type history struct {
	t   *testing.T
	rnd *rand.Rand
	dir string

	// The journal.
	cfg     journal.Config
	j       journal.Journal
	reg     *prometheus.Registry
	clock   watch
	mu      sync.Mutex
	commits []int // appends of each transaction since the last append of the history

	// The model.
	records   []modelRecord // that are kept
	last      uint64
	readers   map[string]*modelReader
	written   float64 // bytes since the journal was opened
	appends   uint64
	groups    int
	refusals  float64
	cancelled float64
}

type modelRecord struct {
	seq      uint64
	data     string
	at       time.Time
	blockEnd uint64 // retention removes whole blocks
}

type modelReader struct {
	position journal.Position
	dropped  int64
	skipped  uint64
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), readers: map[string]*modelReader{}}
	h.open()
	return h
}

// open opens the journal with random limits.
func (h *history) open() {
	h.cfg = testConfig()
	h.cfg.MaxBytes = []int64{0, 1, 300, 2000}[h.rnd.IntN(4)]
	h.cfg.MaxAge = []time.Duration{0, time.Minute, 10 * time.Minute}[h.rnd.IntN(3)]
	h.cfg.DropUnread = h.rnd.IntN(3) == 0
	h.cfg.TailBytes = []int{0, 500, 1 << 20}[h.rnd.IntN(3)]
	h.cfg.MaxGroupRecords = 1 + h.rnd.IntN(6)
	h.cfg.MaxRecordBytes = 200

	h.reg = prometheus.NewRegistry()
	h.written, h.appends, h.groups, h.refusals, h.cancelled = 0, 0, 0, 0, 0
	var err error
	h.j, err = journal.OpenHooked(h.cfg, h.dir, zap.NewNop(), h.reg, journal.Hooks{
		Clock: h.clock.hook,
		BeforeCommit: func(appends int) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if appends > 0 {
				h.commits = append(h.commits, appends)
			}
			return nil
		},
	})
	must(h.t, err)
	h.t.Cleanup(func() { _ = h.j.Close(context.Background()) })
}

func (h *history) reopen() {
	must(h.t, h.j.Close(context.Background()))
	for _, r := range h.readers {
		r.skipped = 0 // not stored
	}
	h.open()
}

func (h *history) now() time.Time {
	wall, _ := h.clock.hook()
	return time.UnixMicro(wall)
}

func (h *history) step() {
	name := string(rune('a' + h.rnd.IntN(3)))
	switch n := h.rnd.IntN(100); {
	case n < 25:
		h.append(1 + h.rnd.IntN(8))
	case n < 30:
		h.refusedAppend()
	case n < 40:
		h.clock.pass(time.Duration(h.rnd.IntN(120)) * time.Second)
	case n < 47:
		h.register(name, journal.Start(h.rnd.IntN(2)))
	case n < 65:
		h.commit(name)
	case n < 67:
		must(h.t, h.j.Unregister(context.Background(), name))
		delete(h.readers, name)
	case n < 70:
		if r := h.readers[name]; r != nil {
			r.skipped = uint64(h.rnd.IntN(int(h.last) + 1))
			h.j.(interface{ Skipped(string, uint64) }).Skipped(name, r.skipped)
		}
	case n < 80:
		h.trim()
	case n < 83:
		h.reopen()
	case n < 88:
		h.wait(uint64(h.rnd.IntN(int(h.last) + 3)))
	default:
		h.read(uint64(h.rnd.IntN(int(h.last)+3)), h.rnd.IntN(12), h.rnd.IntN(400))
	}
}

// append appends n records at once, which share blocks as the writer takes them.
func (h *history) append(n int) {
	h.commits = nil
	var group sync.WaitGroup
	var mu sync.Mutex
	for range n {
		data := h.randomData()
		group.Go(func() {
			seq, err := h.j.Append(context.Background(), []byte(data))
			if err != nil {
				h.t.Error("append:", err)
			}
			mu.Lock()
			defer mu.Unlock()
			h.records = append(h.records, modelRecord{seq: seq, data: data, at: h.now()})
			h.written += float64(len(data))
		})
	}
	group.Wait()
	slices.SortFunc(h.records, func(a, b modelRecord) int { return int(a.seq) - int(b.seq) })

	added := h.records[len(h.records)-n:]
	for i := range added {
		if added[i].seq != h.last+1+uint64(i) {
			h.t.Fatalf("%d records after number %d have the numbers %v", n, h.last, added)
		}
	}
	h.groups += len(h.commits)
	for _, size := range h.commits {
		for i := range size {
			added[i].blockEnd = added[size-1].seq
		}
		added = added[size:]
	}
	h.last += uint64(n)
	h.appends += uint64(n)
}

func (h *history) randomData() string {
	data := make([]byte, h.rnd.IntN(101))
	for i := range data {
		data[i] = byte(h.rnd.Uint32())
	}
	return string(data)
}

func (h *history) refusedAppend() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.j.Append(ended, nil); !errors.Is(err, context.Canceled) {
		h.t.Errorf("append without time: %v", err)
	}
	h.cancelled++
	if _, err := h.j.Append(context.Background(), make([]byte, h.cfg.MaxRecordBytes+1)); fault.KindOf(err) != fault.TooLarge {
		h.t.Errorf("append of a record over the limit: %v", err)
	}
	h.refusals++
}

// first returns the number of the oldest record kept, or the next number.
func (h *history) first() uint64 {
	if len(h.records) == 0 {
		return h.last + 1
	}
	return h.records[0].seq
}

func (h *history) register(name string, from journal.Start) {
	got, err := h.j.Register(context.Background(), name, from)
	must(h.t, err)
	r := h.readers[name]
	if r == nil {
		r = &modelReader{position: journal.Position{Seq: h.first() - 1}}
		if from == journal.End {
			r.position.Seq = h.last
		}
		h.readers[name] = r
		h.j.(interface{ Skipped(string, uint64) }).Skipped(name, 0) // a former reader of this name skipped some
	}
	if got != r.position {
		h.t.Errorf("register %s: %+v, want %+v", name, got, r.position)
	}
}

func (h *history) commit(name string) {
	r := h.readers[name]
	p := journal.Position{Seq: uint64(h.rnd.IntN(int(h.last) + 2)), Index: uint32(h.rnd.IntN(3))}
	want := ""
	if r == nil {
		want = "reader_not_found"
	} else {
		if h.rnd.IntN(3) == 0 { // around the oldest record, where retention decides
			p.Seq = h.first() + uint64(h.rnd.IntN(3)) - 1
		}
		if h.rnd.IntN(4) > 0 {
			p.Seq = max(r.position.Seq, p.Seq)
		}
		p.Count = r.position.Count + uint64(h.rnd.IntN(3))
		if h.rnd.IntN(8) == 0 {
			p.Count = uint64(h.rnd.IntN(4))
		}
		switch {
		case p.Seq < r.position.Seq, p.Seq == r.position.Seq && p.Index < r.position.Index, p.Count < r.position.Count:
			want = "cursor_backwards"
		case p.Seq > h.last, p.Seq == h.last && p.Index > 0:
			want = "cursor_ahead"
		default:
			r.position = p
		}
	}
	got := ""
	if err := h.j.Commit(context.Background(), name, p); err != nil {
		got = code(err)
	}
	if got != want {
		h.t.Errorf("commit %s at %+v: %q, want %q; newest %d, reader %+v", name, p, got, want, h.last, r)
	}
}

func (h *history) trim() {
	done := h.last
	for _, r := range h.readers {
		if !h.cfg.DropUnread {
			done = min(done, r.position.Seq)
		}
	}
	before := h.first() - 1
	for len(h.records) > 0 {
		oldest := h.records[0]
		tooMuch := h.cfg.MaxBytes > 0 && h.bytes(h.first()-1) > h.cfg.MaxBytes
		tooOld := h.cfg.MaxAge > 0 && oldest.at.Before(h.now().Add(-h.cfg.MaxAge))
		if oldest.blockEnd > done || !tooMuch && !tooOld {
			break
		}
		h.records = slices.DeleteFunc(h.records, func(r modelRecord) bool { return r.blockEnd == oldest.blockEnd })
	}
	through := h.first() - 1
	for _, r := range h.readers {
		if from := max(before, r.position.Seq); from < through {
			r.dropped += int64(through - from)
		}
	}

	if got := trim(h.t, h.j); got != int64(through-before) {
		h.t.Errorf("trim removed %d records, want %d", got, through-before)
	}
}

// after returns the records that are kept behind a number.
func (h *history) after(seq uint64) []modelRecord {
	i := slices.IndexFunc(h.records, func(r modelRecord) bool { return r.seq > seq })
	if i < 0 {
		return nil
	}
	return h.records[i:]
}

func (h *history) bytes(after uint64) (n int64) {
	for _, r := range h.after(after) {
		n += int64(len(r.data))
	}
	return n
}

func (h *history) wait(after uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	if len(h.after(after)) == 0 {
		cancel()
		if err := h.j.Wait(ctx, after); !errors.Is(err, context.Canceled) {
			h.t.Errorf("wait behind %d of %d: %v, want the end of the context", after, h.last, err)
		}
	} else if err := h.j.Wait(ctx, after); err != nil {
		h.t.Errorf("wait behind %d of %d: %v", after, h.last, err)
	}
	cancel()
}

func (h *history) read(after uint64, maxRecords, maxBytes int) {
	var want []modelRecord
	bytes := 0
	for _, r := range h.after(after) {
		if len(want) > 0 && (len(want) >= maxRecords || bytes+len(r.data) > maxBytes) {
			break
		}
		want = append(want, r)
		bytes += len(r.data)
	}

	got, err := h.j.Read(context.Background(), after, maxRecords, maxBytes)
	must(h.t, err)
	if len(got) != len(want) {
		h.t.Fatalf("read %d records and %d bytes behind %d: got %d records, want %d", maxRecords, maxBytes, after, len(got), len(want))
	}
	for i, r := range got {
		if w := want[i]; r.Seq != w.seq || string(r.Data) != w.data || !r.At.Equal(w.at) {
			h.t.Errorf("read record %d of %s, %d bytes; want %d of %s, %d bytes", r.Seq, r.At, len(r.Data), w.seq, w.at, len(w.data))
		}
		clear(r.Data) // belongs to the reader: the next read gets its own
		_ = append(r.Data, '!')
	}
}

func (h *history) checkStats() {
	h.t.Helper()
	s := stats(h.t, h.j)
	var oldest time.Time
	if len(h.records) > 0 {
		oldest = h.records[0].at
	}
	if s.First != h.first() || s.Last != h.last || s.Records != int64(len(h.records)) || s.Bytes != h.bytes(0) || !s.OldestAt.Equal(oldest) {
		h.t.Errorf("%d records from %d to %d, %d bytes, from %s; want %d from %d to %d, %d bytes, from %s", s.Records, s.First, s.Last, s.Bytes, s.OldestAt,
			len(h.records), h.first(), h.last, h.bytes(0), oldest)
	}
	if s.Broken != nil || len(s.Incidents) > 0 || len(s.Damaged) > 0 || s.Previous != nil || s.FileBytes == 0 {
		h.t.Errorf("something is wrong: %+v", s)
	}

	metrics := map[string]float64{
		"records": float64(s.Records), "bytes": float64(s.Bytes), "broken": 0, "file_bytes": float64(s.FileBytes),
		"damaged_records_total": 0, "files_replaced_total": 0, "written_bytes_total": h.written,
		"append_seconds": float64(h.appends), "group_records": float64(h.groups),
	}
	if h.refusals > 0 {
		metrics["refused_total canceled"], metrics["refused_total record_too_large"] = h.cancelled, h.refusals
	}
	want := []journal.ReaderStats{}
	for _, name := range slices.Sorted(maps.Keys(h.readers)) {
		r := h.readers[name]
		stats := journal.ReaderStats{Name: name, Position: r.position, Dropped: r.dropped}
		if left := h.after(max(r.position.Seq, r.skipped)); len(left) > 0 {
			stats.Lag, stats.Bytes, stats.OldestAt = int64(len(left)), h.bytes(left[0].seq-1), left[0].at
		}
		want = append(want, stats)
		metrics["reader_lag_records "+name], metrics["reader_lag_bytes "+name] = float64(stats.Lag), float64(stats.Bytes)
		metrics["reader_dropped_records_total "+name] = float64(r.dropped)
	}
	same := func(a, b journal.ReaderStats) bool {
		at := a.OldestAt.Equal(b.OldestAt)
		a.OldestAt = b.OldestAt
		return at && a == b
	}
	if !slices.EqualFunc(s.Readers, want, same) {
		h.t.Errorf("readers\n%+v, want\n%+v", s.Readers, want)
	}

	got := gather(h.t, h.reg)
	maps.DeleteFunc(got, func(name string, _ float64) bool {
		return strings.HasPrefix(name, "reader_lag_seconds ")
	})
	if !maps.Equal(got, metrics) {
		h.t.Errorf("metrics\n%v, want\n%v", got, metrics)
	}
}

// gather returns the journal's metrics by name and value of the label, the number of values of
// a histogram.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()[len("guidon_journal_"):]
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}
