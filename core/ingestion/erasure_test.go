package ingestion_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/ingestion/replay"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// removals stands for the persons of an erasure. It fails a given number of times.
type removals struct {
	mu    sync.Mutex
	fails int
	ids   []string
	done  []persons.Removal
}

func (r *removals) Get(context.Context, int64, string) (persons.Person, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		return persons.Person{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return persons.Person{DistinctIDs: slices.Clone(r.ids)}, nil
}

func (r *removals) Remove(_ context.Context, one *persons.Removal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails > 0 {
		r.fails--
		return errors.New("the database is away")
	}
	r.done = append(r.done, *one)
	return nil
}

func (r *removals) list() []persons.Removal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done)
}

func startErasures(t *testing.T, d *db.DB, j journal.Journal, p erasure.Persons) *erasure.Service {
	t.Helper()
	s := erasure.New(d, j, p, zap.NewNop())
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopErasures(t, s) })
	return s
}

func stopErasures(t *testing.T, s *erasure.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// startErasingWorker starts a worker that respects erasures.
func startErasingWorker(t *testing.T, j reader.Log, d *db.DB, e *erasure.Service, stages ...pipeline.Stage) *pipeline.Worker {
	t.Helper()
	cfg := workerConfig()
	w, err := pipeline.NewWorker(cfg.Worker, cfg.Limits, j, d, stages, nil, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	w.RespectErasures(e)
	e.FollowProgress(w.Processed)
	if err := w.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWorker(t, w) })
	return w
}

const ofV = `{"event":"other","distinct_id":"v"}`

// TestErasureReachesWaitingEvents erases a person whose events are accepted and
// not processed: the worker drops them, in both lanes, and processes later ones.
func TestErasureReachesWaitingEvents(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		accept(t, j, "before", ofV, "before")
		imported := ingestImport(t, j, "imported")
		p := &removals{}
		e := startErasures(t, d, j, p)
		if err := e.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}); err != nil {
			t.Fatal(err)
		}
		accept(t, j, "after")
		s := &stage{db: d}
		w := startErasingWorker(t, j, d, e, s)
		eventually(t, "all records", func() bool { return w.Processed() == imported+2 })
		if got := s.seen(); got != "other after" {
			t.Fatalf("processed %q", got)
		}
		if got := letters(t, d); got != "" {
			t.Fatalf("dead letters %q: the erasure's record is none", got)
		}
	})
}

// ingestImport appends an import of user u and returns the number of its record.
func ingestImport(t *testing.T, j journal.Journal, name string) uint64 {
	t.Helper()
	rec := event.Record{ReceivedAt: time.Now(), ProjectID: 1, RequestID: [16]byte{9, 9}, Historical: true, Items: []byte(`[{"event":"` + name + `","distinct_id":"u"}]`)}
	seq, err := j.Append(context.Background(), rec.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// TestDeletionKeepsWaitingEvents deletes a person but not its events: those that
// wait are stored and do not bring the person back.
func TestDeletionKeepsWaitingEvents(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		people := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
		e := startErasures(t, d, j, people)
		people.RecordWith(e)
		accept(t, j, `{"event":"$set","distinct_id":"u","properties":{"$set":{"a":1}}}`,
			`{"event":"$identify","distinct_id":"v","properties":{"$anon_distinct_id":"u"}}`, "kept")
		process(t, d, people, &sdk.Event{ProjectID: 1, Name: "$set", DistinctID: "u", UUID: "0192f0aa-0000-7000-8000-000000000001", Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: []byte(`{"$set":{"b":1}}`)})
		found, ok, err := people.ByDistinctID(t.Context(), 1, "u")
		if err != nil || !ok {
			t.Fatal(found, ok, err)
		}
		if err := people.Delete(t.Context(), 1, found.UUID, false); err != nil {
			t.Fatal(err)
		}
		s := &stage{db: d}
		w := startErasingWorker(t, j, d, e, pipeline.PersonStage(people), s)
		eventually(t, "all records", func() bool { return w.Processed() == 2 })
		if got := s.seen(); got != "$set $identify kept" {
			t.Fatalf("processed %q", got)
		}
		if n, err := people.Count(t.Context(), 1); err != nil || n != 0 {
			t.Fatalf("%d persons, %v", n, err)
		}
		accept(t, j, "new")
		eventually(t, "a later event makes a new person", func() bool { n, err := people.Count(t.Context(), 1); return err == nil && n == 1 })
	})
}

func process(t *testing.T, d *db.DB, people *persons.Service, batch ...*sdk.Event) {
	t.Helper()
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		_, err := people.Process(ctx, batch)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInterruptedErasureIsFinished fails an erasure at each of its steps. The
// request reports that it is pending, and it is carried out later, also by another
// process.
func TestInterruptedErasureIsFinished(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		full := &fullJournal{Journal: j}
		for _, c := range []struct {
			name              string
			appends, removals int // failures
		}{{"the journal is full", 3, 0}, {"the database is away", 0, 3}} {
			p := &removals{fails: c.removals}
			full.fail(c.appends)
			s := startErasures(t, d, full, p)
			err := s.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true})
			if f := fault.From(err); f == nil || f.Code != "erasure_pending" {
				t.Fatalf("%s: %v", c.name, err)
			}
			stopErasures(t, s)
			next := &removals{}
			s = startErasures(t, d, j, next)
			eventually(t, c.name+": the next start finishes it", func() bool { return len(next.list())+len(p.list()) > 0 })
			eventually(t, c.name+": it is done", func() bool {
				var open int
				err := d.Read(t.Context()).NewRaw("SELECT count(*) FROM erasures WHERE done_at IS NULL OR distinct_ids <> '[]'").Scan(t.Context(), &open)
				return err == nil && open == 0
			})
			stopErasures(t, s)
		}
	})
}

// fullJournal fails some appends.
type fullJournal struct {
	journal.Journal

	mu    sync.Mutex
	fails int
}

func (f *fullJournal) fail(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = n
}

func (f *fullJournal) Append(ctx context.Context, data []byte) (uint64, error) {
	f.mu.Lock()
	failing := f.fails > 0
	f.fails--
	f.mu.Unlock()
	if failing {
		return 0, fault.New(fault.Unavailable, "journal_full", "The journal is full.")
	}
	return f.Journal.Append(ctx, data)
}

// TestErasureFollowsMerges erases a person that got a distinct id after the
// request: the id is erased, too, and the last record of the journal names both.
func TestErasureFollowsMerges(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	p := &removals{ids: []string{"u", "late"}}
	s := startErasures(t, d, j, p)
	if err := s.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}); err != nil {
		t.Fatal(err)
	}
	if done := p.list(); len(done) != 1 || !slices.Equal(done[0].DistinctIDs, []string{"u", "late"}) {
		t.Fatalf("%+v", done)
	}
	records, err := j.Read(t.Context(), 1, 10, 1<<20)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	if e, err := event.ParseErasure(records[0].Data); err != nil || strings.Join(e.DistinctIDs, " ") != "u late" {
		t.Fatalf("%+v %v", e, err)
	}
}

// TestLateDeadLetterIsErased adds a dead letter of an erased person after the
// erasure, as a sink does that was behind.
func TestLateDeadLetterIsErased(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		s := startErasures(t, d, j, &removals{})
		received := time.Now()
		if err := s.Erase(t.Context(), persons.Removal{ProjectID: 1, DistinctIDs: []string{"u"}, Events: true}); err != nil {
			t.Fatal(err)
		}
		store := deadletter.NewStore(d)
		for i, c := range []struct {
			name, id string
			received time.Time
		}{{"erased", "u", received.Add(-time.Second)}, {"later", "u", received.Add(time.Hour)}, {"other", "v", received.Add(-time.Second)}} {
			ev := &sdk.Event{ProjectID: 1, UUID: string(rune('a' + i)), Name: c.name, DistinctID: c.id, ReceivedAt: c.received, Properties: []byte(`{}`)}
			if err := store.Add(t.Context(), deadletter.New("sink/s", ev, &sdk.Error{}, time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the dead letter of the erased person is deleted", func() bool { return letters(t, d) == "later other" })
	})
}

// TestUnreadableDeadLettersAreErased deletes unreadable bytes of the journal that
// hold a distinct id.
func TestUnreadableDeadLettersAreErased(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	store := deadletter.NewStore(d)
	for i, data := range []string{`?[{"distinct_id":"u"}]`, `?[{"distinct_id":"uu"}]`} {
		rec := journal.Record{Seq: uint64(i + 1), Data: []byte(data)}
		if err := store.Add(t.Context(), deadletter.NewUnreadable("j", rec, errors.New("unreadable"))); err != nil {
			t.Fatal(err)
		}
	}
	damaged := &journal.DamagedError{First: 3, Last: 4, Saved: []journal.Record{{Seq: 3, Data: []byte(`{"distinct_id":"u"}`)}}}
	if err := store.Add(t.Context(), deadletter.NewDamaged(deadletter.SourceWorker, "j", damaged)); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Erase(t.Context(), 1, []string{"u"}); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}

// TestErasureReachesWaitingDeliveries erases a person while a sink refuses a batch
// with its events: the sink gets the events of others, and those that the same
// distinct id sends later.
func TestErasureReachesWaitingDeliveries(t *testing.T) {
	t.Parallel()
	for name, props := range map[string]sdk.SinkProperties{
		"total order": {}, "order per key": {Ordering: sdk.OrderPerKey, MaxInFlight: 4}, "staged": {Commit: sdk.CommitOnFlush},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Run(t, func(t *testing.T, d *db.DB) {
				j := openJournal(t, t.TempDir())
				accept(t, j, "before", ofV, "before")
				var open atomic.Bool
				s := &fakeSink{name: "one", props: props}
				s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
					if !open.Load() {
						return sdk.WriteResult{}, sdk.Errorf(sdk.ClassTransient, "busy", "busy")
					}
					if props.Commit == sdk.CommitOnFlush {
						s.kept = append(s.kept, eventNames(b)...)
						return sdk.WriteResult{Outcome: sdk.Staged}, nil
					}
					return b.Committed(), nil
				}
				e := startErasures(t, d, j, &removals{})
				startErasingWorker(t, j, d, e)
				del := newDeliver(t, deliverConfig(), j, d, newSinks(s))
				del.RespectErasures(e)
				runDeliver(t, del)
				eventually(t, "the sink refuses", func() bool { return len(s.sent()) > 0 })
				if err := e.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}); err != nil {
					t.Fatal(err)
				}
				accept(t, j, "after")
				open.Store(true)
				eventually(t, "the events behind the erasure", func() bool { return strings.Contains(s.has(), "after") })
				if got := s.has(); got != "other after" {
					t.Errorf("the sink has %q, want the events of others and later ones", got)
				}
				eventually(t, "the cursor moves over erased events", func() bool { return committed(t, j, "sink/one").Seq == 3 })
			})
		})
	}
}

// A dead letter of an erased person that a sink added after the erasure is deleted
// by its replay.
func TestReplayToASinkSendsNoErasedPerson(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &fakeSink{name: "one"}
		del, w := deadLetterAll(t, d, s, "erased", "other")
		r := replay.NewReplayer(replayConfig(), d, w, del, deadletter.NewMetrics(nil), zap.NewNop())
		r.RespectErasures(&erasedFirst{})
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Stop(context.Background()) })
		replayAll(t, deadletter.NewService(d, event.DefaultLimits(), r.Wake), 0)
		eventually(t, "no dead letters", func() bool { return letters(t, d) == "" })
		if got := s.has(); got != "other" {
			t.Errorf("the sink has %q, want the event of the other person", got)
		}
	})
}

// erasedFirst reports the first event as erased.
type erasedFirst struct{ asked atomic.Bool }

func (e *erasedFirst) DroppedAt(context.Context, int64, string, time.Time) (bool, error) {
	return !e.asked.Swap(true), nil
}
