package delivery

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// memoryLog is a journal of a few records and one cursor per reader.
type memoryLog struct {
	mu      sync.Mutex
	records []journal.Record
	readers map[string]journal.Position
}

func logOf(seqs ...uint64) *memoryLog {
	l := &memoryLog{readers: map[string]journal.Position{}}
	for _, seq := range seqs {
		l.records = append(l.records, journal.Record{Seq: seq})
	}
	return l
}

func (l *memoryLog) Read(_ context.Context, after uint64, _, _ int) ([]journal.Record, error) {
	for i, r := range l.records {
		if r.Seq > after {
			return l.records[i:], nil
		}
	}
	return nil, nil
}

func (l *memoryLog) Wait(ctx context.Context, _ uint64) error { <-ctx.Done(); return ctx.Err() }

func (l *memoryLog) Register(_ context.Context, name string, _ journal.Start) (journal.Position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.readers[name]
	if !ok {
		l.readers[name] = p
	}
	return p, nil
}

func (l *memoryLog) Commit(_ context.Context, name string, p journal.Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.readers[name]; !ok {
		return fault.New(fault.NotFound, "not_found", "no such reader")
	}
	l.readers[name] = p
	return nil
}

func (l *memoryLog) Unregister(_ context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.readers, name)
	return nil
}

func (l *memoryLog) Stats(context.Context) (journal.Stats, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out journal.Stats
	for name, p := range l.readers {
		out.Readers = append(out.Readers, journal.ReaderStats{Name: name, Position: p})
	}
	return out, nil
}

var _ reader.Log = (*memoryLog)(nil)

// scriptedSink answers with functions. Its session is a field.
type scriptedSink struct {
	props   sdk.SinkProperties
	write   func(b *sdk.Batch) (sdk.WriteResult, error)
	flush   func(upTo uint64) (sdk.FlushResult, error)
	current uint64
}

func (s *scriptedSink) Name() string                   { return "test" }
func (s *scriptedSink) Properties() sdk.SinkProperties { return s.props }
func (s *scriptedSink) Session() uint64                { return s.current }
func (s *scriptedSink) Ready(ctx context.Context) error {
	return ctx.Err()
}

func (s *scriptedSink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	return s.write(b)
}

func (s *scriptedSink) Flush(_ context.Context, _ sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	return s.flush(upTo)
}

func testTarget(s Sink) *target {
	cfg := DefaultConfig()
	cfg.RetryMin, cfg.RetryMax, cfg.ConfigRetry = time.Millisecond, 2*time.Millisecond, 2*time.Millisecond
	t := &target{
		sink: s, cfg: cfg, limits: event.DefaultLimits(), metrics: NewMetrics(nil), deadMetrics: deadletter.NewMetrics(nil), logger: zap.NewNop(), active: &atomic.Int64{},
	}
	if err := t.configure(); err != nil {
		panic(err)
	}
	return t
}

// testedSender is a sender with its database.
type testedSender struct {
	*sender

	db *db.DB
}

// testSender returns a sender with an open gate and a database for dead letters.
func testSender(t *testing.T, s Sink) *testedSender {
	t.Helper()
	d := dbtest.SQLite(t)
	gate := pause.NewGate()
	gate.Set(nil)
	return &testedSender{db: d, sender: &sender{
		calls:  &window.Calls{},
		target: testTarget(s), gate: gate, deadLetters: deadletter.NewStore(d), pauses: pause.NewStore(d), source: "sink/test",
		drainCtx: t.Context(), killCtx: t.Context(),
	}}
}

// testBatch returns a batch of events with these names, numbered from 1.
func testBatch(names ...string) *batch {
	var events []sdk.Event
	for i, name := range names {
		id := []byte("0190a5a2-7b3c-7000-8000-000000000000")
		id[len(id)-1] = byte('0' + i)
		events = append(events, sdk.Event{UUID: string(id), ProjectID: 1, Name: name, DistinctID: "u", Properties: []byte("{}")})
	}
	b := newBatch(&filter.Filter{}, events, make([]uint64, len(events)))
	b.firstSeq = 1
	b.place.reader = testReader(false)
	return b
}
