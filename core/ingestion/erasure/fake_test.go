package erasure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
)

// fakeLog is a log with one partition that counts what is read and may lose records.
type fakeLog struct {
	mu      sync.Mutex
	id      string
	records []journal.Record
	limit   int                      // of records of a read; 0: none
	read    int                      // records read
	appends int                      // calls of Append
	onRead  func(after uint64) error // before each read; may be nil
	damaged map[uint64]bool          // numbers that cannot be read
}

var _ eventlog.Log = (*fakeLog)(nil)

func (l *fakeLog) Partitions() int { return 1 }

func (l *fakeLog) Append(_ context.Context, parts []eventlog.Part) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appends++
	for _, p := range parts {
		l.records = append(l.records, journal.Record{Seq: uint64(len(l.records) + 1), Data: p.Data})
	}
	return nil
}

func (l *fakeLog) Partition(int, int64) eventlog.Partition { return fakePartition{log: l} }

func (l *fakeLog) Register(context.Context, string, journal.Start) error { return nil }
func (l *fakeLog) Close(context.Context) error                           { return nil }

// cut loses the records behind a number.
func (l *fakeLog) cut(last int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = l.records[:min(last, len(l.records))]
}

func (l *fakeLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.records))
}

// reads returns the number of records that were read since the last call.
func (l *fakeLog) reads() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, l.read = l.read, 0
	return n
}

// fakePartition has what a scan needs.
type fakePartition struct {
	eventlog.Partition
	log *fakeLog
}

func (p fakePartition) Read(ctx context.Context, after uint64, maxRecords, _ int) ([]journal.Record, error) {
	if p.log.onRead != nil {
		if err := p.log.onRead(after); err != nil {
			return nil, err
		}
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if after >= uint64(len(p.log.records)) {
		return nil, nil
	}
	if p.log.limit > 0 {
		maxRecords = min(maxRecords, p.log.limit)
	}
	rest := p.log.records[after:]
	rest = rest[:min(len(rest), maxRecords)]
	for i, r := range rest {
		if !p.log.damaged[r.Seq] {
			continue
		}
		if i == 0 {
			return nil, &journal.DamagedError{First: r.Seq, Last: r.Seq}
		}
		rest = rest[:i]
		break
	}
	p.log.read += len(rest)
	return append([]journal.Record(nil), rest...), nil
}

func (p fakePartition) Stats(context.Context) (journal.Stats, error) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return journal.Stats{ID: p.log.id, First: 1, Last: uint64(len(p.log.records))}, nil
}

// addRequests appends records that are no erasures; each differs from all others.
func (l *fakeLog) addRequests(n int) {
	parts := make([]eventlog.Part, n)
	for i := range parts {
		parts[i].Data = fmt.Appendf(nil, "request %d", requests.next())
	}
	_ = l.Append(context.Background(), parts) // returns nil
}

// addRecords appends records of a size.
func (l *fakeLog) addRecords(n, size int) {
	parts := make([]eventlog.Part, n)
	for i := range parts {
		parts[i].Data = make([]byte, size)
	}
	_ = l.Append(context.Background(), parts) // returns nil
}

// addErasure appends the record of an erasure and returns its number.
func (l *fakeLog) addErasure(tb testing.TB, id string, distinctIDs ...string) uint64 {
	tb.Helper()
	e := event.Erasure{ID: id, ProjectID: 1, DistinctIDs: distinctIDs, Events: true, At: time.Unix(1_700_000_000, 0).UTC()}
	data, err := e.Append(nil)
	if err != nil {
		tb.Fatal(err)
	}
	_ = l.Append(context.Background(), []eventlog.Part{{Data: data}}) // returns nil
	return l.last()
}

// sequence gives numbers.
type sequence struct {
	mu sync.Mutex
	n  int
}

func (s *sequence) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

var requests sequence

// fakePersons counts the removals by distinct id. onRemove, if set, may fail one.
type fakePersons struct {
	mu       sync.Mutex
	removed  map[string]int
	onRemove func() error
}

func (*fakePersons) Get(context.Context, int64, string) (persons.Person, error) {
	return persons.Person{}, fault.New(fault.NotFound, "not_found", "Not found.")
}

func (p *fakePersons) Remove(_ context.Context, r *persons.Removal) error {
	if p.onRemove != nil {
		if err := p.onRemove(); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed == nil {
		p.removed = map[string]int{}
	}
	for _, id := range r.DistinctIDs {
		p.removed[id]++
	}
	return nil
}

// fakeCursor is the cursor of a live lane. onStored, if set, may fail the read of the
// database.
type fakeCursor struct {
	processed uint64
	stored    *uint64
	onStored  func() error
}

func (c *fakeCursor) ProcessedSeq() uint64 { return c.processed }
func (c *fakeCursor) StoredSeq(context.Context) (uint64, error) {
	if c.onStored != nil {
		if err := c.onStored(); err != nil {
			return 0, err
		}
	}
	return *c.stored, nil
}

// newOwner returns the partition for a node that takes it over. It writes the position after
// so many records.
func newOwner(d *db.DB, l *fakeLog, p Persons, c Cursor, saveRecords int) *Partition {
	s := New(d, nil, p, zap.NewNop())
	s.OnLog(l)
	out := s.Partition(0)
	out.saveRecords = saveRecords
	out.FollowCursor(c)
	return out
}

// cursorAt returns a cursor that the database has.
func cursorAt(seq uint64) *fakeCursor { return &fakeCursor{processed: seq, stored: &seq} }

var errCrash = errors.New("crash")

// storedPosition returns the position in the database.
func storedPosition(tb testing.TB, d *db.DB, l *fakeLog) position {
	tb.Helper()
	at, err := (&store{d}).scanPosition(tb.Context(), l.id)
	if err != nil {
		tb.Fatal(err)
	}
	return at
}

// takeOver requires that the partition is recovered behind a cursor.
func takeOver(tb testing.TB, p *Partition, cursor uint64) {
	tb.Helper()
	if err := p.recover(tb.Context(), cursor); err != nil {
		tb.Fatal(err)
	}
}
