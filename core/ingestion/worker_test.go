package ingestion_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

func openJournal(tb testing.TB, dir string) journal.Journal {
	tb.Helper()
	cfg := journal.DefaultConfig()
	cfg.MinFreeBytes = 0
	j, err := journal.Open(cfg, dir, zap.NewNop(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close(context.Background()) })
	return j
}

// accept appends a request with these events of user u: names, or whole items
// when they start with a brace.
func accept(tb testing.TB, j journal.Journal, names ...string) {
	tb.Helper()
	var items []string
	for _, n := range names {
		if !strings.HasPrefix(n, "{") {
			n = `{"event":"` + n + `","distinct_id":"u"}`
		}
		items = append(items, n)
	}
	rec := ingestiontest.Record("[" + strings.Join(items, ",") + "]")
	rec.RequestID = [16]byte{byte(counter.Add(1)), byte(counter.Load() >> 8)}
	if _, err := j.Append(context.Background(), rec.Append(nil)); err != nil {
		tb.Fatal(err)
	}
}

var counter atomic.Int64

// stage records committed events, and fails as its function does.
type stage struct {
	db   *db.DB
	fail func(batch []*sdk.Event) error

	mu    sync.Mutex
	names []string
	calls int
}

func (s *stage) Name() string { return "test" }

func (s *stage) Process(ctx context.Context, batch []*sdk.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fail != nil {
		if err := s.fail(batch); err != nil {
			return err
		}
	}
	var names []string
	for _, e := range batch {
		names = append(names, e.Name)
		e.Name = "changed by a stage"
	}
	s.db.AfterCommit(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names = append(s.names, names...)
	})
	return nil
}

func (s *stage) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.names, " ")
}

func (s *stage) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

func (s *stage) failing(f func(batch []*sdk.Event) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("never happened: %s", what)
		}
	}
}

func workerConfig() ingestion.Config {
	cfg := ingestion.DefaultConfig()
	cfg.Worker.RetryMin, cfg.Worker.RetryMax = time.Millisecond, 10*time.Millisecond
	return cfg
}

func startWorker(tb testing.TB, cfg ingestion.Config, j reader.Log, d *db.DB, known pipeline.Deduplicator, stages ...pipeline.Stage) *pipeline.Worker {
	tb.Helper()
	w, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, j, d, stages, known, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stopWorker(tb, w) })
	return w
}

func TestEventsOfATrickleShareTransactions(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j, cfg, s := openJournal(t, t.TempDir()), workerConfig(), &stage{db: d}
		cfg.Worker.Linger = 250 * time.Millisecond
		startWorker(t, cfg, j, d, nil, s)
		begin := time.Now()
		for n := range 60 {
			accept(t, j, strconv.Itoa(n))
			time.Sleep(5 * time.Millisecond)
		}
		eventually(t, "all events are processed", func() bool { return len(s.list()) == 60 })
		s.mu.Lock()
		defer s.mu.Unlock()
		if most := 2 + int(time.Since(begin)/cfg.Worker.Linger); s.calls > most {
			t.Errorf("%d transactions in %s, want at most %d", s.calls, time.Since(begin), most)
		}
	})
}

// The batch that waits for a transaction gets the events that come meanwhile.
func TestEventsOfASlowTransactionShareTheNext(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j, cfg := openJournal(t, t.TempDir()), workerConfig()
		cfg.Worker.Linger, cfg.Worker.MaxEvents = 0, 20
		begun, goOn := make(chan struct{}, 10), make(chan struct{})
		s := &stage{db: d, fail: func([]*sdk.Event) error {
			begun <- struct{}{}
			<-goOn
			return nil
		}}
		w := startWorker(t, cfg, j, d, nil, s)
		accept(t, j, "0")
		<-begun
		for n := range 30 {
			accept(t, j, strconv.Itoa(n+1))
			time.Sleep(2 * time.Millisecond)
		}
		eventually(t, "the next batch is full", func() bool { return w.Status().Read == 21 })
		close(goOn)
		eventually(t, "all events are processed", func() bool { return len(s.list()) == 31 })
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls != 3 {
			t.Errorf("%d transactions, want 3", s.calls)
		}
	})
}

func stopWorker(tb testing.TB, w *pipeline.Worker) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.Stop(ctx); err != nil {
		tb.Error(err)
	}
}

func letters(tb testing.TB, d *db.DB) string {
	tb.Helper()
	var rows []struct{ Event, Message string }
	if err := d.Read(context.Background()).NewRaw("SELECT event, message FROM dead_letters ORDER BY id").Scan(context.Background(), &rows); err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, r.Event)
	}
	return strings.Join(out, " ")
}

func TestWorkerProcessesInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		accept(t, j, "a", "b")
		accept(t, j, `{"event":"dropped"}`, "c", `{}`)
		s := &stage{db: d}
		cfg := workerConfig()
		cfg.Worker.MaxEvents = 2 // a request may end in the middle of a batch
		w := startWorker(t, cfg, j, d, nil, s)
		accept(t, j, "d", "e", "f", "g", "h")
		eventually(t, "all events", func() bool { return s.seen() == "a b c d e f g h" })
		eventually(t, "the journal is told", func() bool {
			p, err := j.Register(context.Background(), "worker", journal.Begin)
			return err == nil && p == journal.Position{Seq: 3, Count: 8}
		})
		if at := w.Status().Position; at.Seq != 3 || at.Count != 8 {
			t.Errorf("status %+v", at)
		}
		var kinds []string
		if err := d.Read(t.Context()).NewRaw("SELECT type FROM ingestion_warnings ORDER BY type").Scan(t.Context(), &kinds); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(kinds, []string{event.KindEmptyEvent, event.KindInvalidDistinctID}) {
			t.Errorf("warnings %v", kinds)
		}
	})
}

// Not parallel: it measures the heap.
func TestWorkerMemoryForARequestOfInvalidItems(t *testing.T) {
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	const items = 300_000
	before := heap()
	w := startWorker(t, workerConfig(), j, d, nil)
	rec := ingestiontest.Record("[" + strings.Repeat("1,", items-1) + "1]")
	if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the record is done", func() bool { return w.Status().Position.Seq == 1 })
	eventually(t, "it has let go of all but a few MB", func() bool { return int64(heap())-int64(before) <= 16<<20 })
	var said int
	if err := d.Read(t.Context()).NewRaw("SELECT count FROM ingestion_warnings").Scan(t.Context(), &said); err != nil {
		t.Fatal(err)
	}
	if said != items {
		t.Errorf("the warning counts %d items, want every one of %d", said, items)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestWorkerRemovesDuplicates(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	const once = `{"event":"a","distinct_id":"u","uuid":"0190a5a2-7b3c-7000-8000-0000000000ff"}`
	accept(t, j, once, once, "b", `{"event":"c","distinct_id":"u","uuid":""}`, `{"event":"d","distinct_id":"u","uuid":""}`)
	accept(t, j, once, "e")
	s := &stage{db: d}
	startWorker(t, workerConfig(), j, d, knows{"e": true}, s)
	accept(t, j, "f")
	eventually(t, "the last event", func() bool { return strings.HasSuffix(s.seen(), "f") })
	if got := strings.Count(s.seen(), "a"); got != 1 || !strings.Contains(s.seen(), "b c d") || strings.Contains(s.seen(), "e") {
		t.Errorf("processed %s", s.seen())
	}
}

// knows is a deduplicator that knows events by name, and those it saw before.
type knows map[string]bool

func (k knows) Known(_ context.Context, batch []*sdk.Event) ([]bool, error) {
	out := make([]bool, len(batch))
	for i, e := range batch {
		out[i] = k[e.Name] || k[e.UUID]
		k[e.UUID] = true
	}
	return out, nil
}

func TestWorkerDeadLettersFailingEvents(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	accept(t, j, "a", "b", "poison", "c")
	accept(t, j, "panic", "d")
	s := &stage{db: d}
	s.fail = func(batch []*sdk.Event) error {
		for _, e := range batch {
			switch e.Name {
			case "poison":
				return errors.New("I cannot take this")
			case "panic":
				panic("no idea what this is")
			}
		}
		return nil
	}
	startWorker(t, workerConfig(), j, d, nil, s)
	eventually(t, "all good events", func() bool { return s.seen() == "a b c d" })
	eventually(t, "the dead letters", func() bool { return letters(t, d) == "poison panic" })
}

func TestWorkerStallsWhenEveryEventFails(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	for i := range 10 {
		accept(t, j, fmt.Sprint("e", i))
	}
	s := &stage{db: d, fail: func([]*sdk.Event) error { return errors.New("a fault of mine") }}
	cfg := workerConfig()
	cfg.Worker.MaxPoison = 3
	w := startWorker(t, cfg, j, d, nil, s)
	eventually(t, "the worker waits", func() bool { return letters(t, d) == "e0 e1 e2" && w.Status().Waiting != nil })
	s.failing(nil)
	eventually(t, "the others", func() bool { return s.seen() == "e3 e4 e5 e6 e7 e8 e9" })
	if w.Status().Waiting != nil {
		t.Errorf("still waiting: %v", w.Status().Waiting)
	}
}

func TestWorkerWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	breakIt := func(sql string) {
		if _, err := d.Write(t.Context()).NewRaw(sql).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	breakIt("ALTER TABLE ingestion_cursors RENAME TO gone")
	s := &stage{db: d}
	w := startWorker(t, workerConfig(), j, d, nil, s)
	accept(t, j, "a", "b")
	eventually(t, "the worker waits", func() bool { return w.Status().Waiting != nil })
	breakIt("ALTER TABLE gone RENAME TO ingestion_cursors")
	eventually(t, "the events", func() bool { return s.seen() == "a b" })
	breakIt("ALTER TABLE ingestion_cursors RENAME TO gone")
	accept(t, j, "c")
	eventually(t, "the worker waits again", func() bool { return w.Status().Waiting != nil })
	accept(t, j, "d")
	breakIt("ALTER TABLE gone RENAME TO ingestion_cursors")
	eventually(t, "the events in order, none twice", func() bool { return s.seen() == "a b c d" })
	if got := letters(t, d); got != "" {
		t.Errorf("dead letters %s", got)
	}
}

// deaf is a journal that ignores commits, as after a crash between the commit of the
// database and that of the journal.
type deaf struct{ journal.Journal }

func (deaf) Commit(context.Context, string, journal.Position) error { return nil }

func TestWorkerCrashBetweenTheTwoCommits(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	accept(t, j, "a", "b")
	s := &stage{db: d}
	w := startWorker(t, workerConfig(), deaf{j}, d, nil, s)
	eventually(t, "the events", func() bool { return s.seen() == "a b" })
	stopWorker(t, w)
	accept(t, j, "c")
	startWorker(t, workerConfig(), j, d, nil, s)
	eventually(t, "the next event", func() bool { return strings.HasSuffix(s.seen(), "c") })
	if s.seen() != "a b c" {
		t.Errorf("processed %s", s.seen())
	}
}

func TestWorkerOfAnotherJournal(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := &stage{db: d}
	first := openJournal(t, t.TempDir())
	accept(t, first, "a")
	accept(t, first, "b")
	w := startWorker(t, workerConfig(), first, d, nil, s)
	eventually(t, "the events", func() bool { return s.seen() == "a b" })
	stopWorker(t, w)
	second := openJournal(t, t.TempDir())
	accept(t, second, "c")
	startWorker(t, workerConfig(), second, d, nil, s)
	eventually(t, "the new journal is read from its beginning", func() bool { return s.seen() == "a b c" })
}

func TestWorkerKeepsUnreadableRecords(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	accept(t, j, "a")
	if _, err := j.Append(t.Context(), []byte("\x09something else")); err != nil {
		t.Fatal(err)
	}
	accept(t, j, "b")
	s := &stage{db: d}
	startWorker(t, workerConfig(), j, d, nil, s)
	eventually(t, "the others", func() bool { return s.seen() == "a b" })
	var payload string
	if err := d.Read(t.Context()).NewRaw("SELECT payload FROM dead_letters").Scan(t.Context(), &payload); err != nil || !strings.Contains(payload, "CXNvbWV0aGluZyBlbHNl") {
		t.Errorf("payload %s, %v", payload, err)
	}
}

func TestWorkerProcessesLiveEventsBeforeImports(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	past := func(names ...string) {
		items := `[{"event":"` + strings.Join(names, `","distinct_id":"u"},{"event":"`) + `","distinct_id":"u"}]`
		rec := ingestiontest.Record(items)
		rec.Historical, rec.RequestID = true, [16]byte{byte(counter.Add(1)), 0xff}
		if _, err := j.Append(t.Context(), rec.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	var imports []string
	for i := range 2500 {
		imports = append(imports, fmt.Sprint("past ", i))
	}
	past(imports...)
	past("last of the past")
	accept(t, j, "live 1", "live 2")
	s := &stage{db: d}
	hold := make(chan struct{})
	s.failing(func(batch []*sdk.Event) error {
		if batch[0].Name == "past 0" {
			<-hold // what follows was accepted while the import is in the database
		}
		return nil
	})
	w := startWorker(t, workerConfig(), j, d, nil, s)
	accept(t, j, "live 3")
	eventually(t, "the live lane has read it", func() bool { return w.Status().Read == 3 })
	close(hold)
	eventually(t, "everything", func() bool {
		return strings.Contains(s.seen(), "last of the past") && strings.Contains(s.seen(), "live 3")
	})
	order := s.list()
	if at := slices.Index(order, "live 3"); at > 1100 {
		t.Errorf("live events waited for %d others", at)
	}
	order = slices.DeleteFunc(order, func(name string) bool { return !strings.HasPrefix(name, "past ") })
	if !slices.Equal(order, imports) {
		t.Errorf("imports are out of order")
	}
	eventually(t, "both cursors reach the end", func() bool {
		return committed(t, j, "worker").Seq == 4 && committed(t, j, "worker/historical").Seq == 4
	})
	if w.HistoricalStatus().Position.Count != 2501 || w.Status().Position.Count != 3 {
		t.Errorf("historical %+v, live %+v", w.HistoricalStatus(), w.Status())
	}
}

func TestWorkerStopFinishesTheBatch(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	j := openJournal(t, t.TempDir())
	inside, leave := make(chan struct{}), make(chan struct{})
	s := &stage{db: d, fail: func([]*sdk.Event) error { close(inside); <-leave; return nil }}
	w := startWorker(t, workerConfig(), j, d, nil, s)
	accept(t, j, "a")
	<-inside
	stopped := make(chan struct{})
	go func() { stopWorker(t, w); close(stopped) }()
	close(leave)
	<-stopped
	if s.seen() != "a" {
		t.Errorf("processed %q", s.seen())
	}
}
