package erasure

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// fakeJournal is a journal of one node, whose appends may fail.
type fakeJournal struct {
	fakePartition
	first    uint64
	readers  []journal.ReaderStats
	onAppend func() error
}

func newFakeJournal(id string) *fakeJournal {
	return &fakeJournal{fakePartition: fakePartition{log: &fakeLog{id: id, limit: 7}}, first: 1}
}

func (j *fakeJournal) Append(ctx context.Context, data []byte) (uint64, error) {
	if j.onAppend != nil {
		if err := j.onAppend(); err != nil {
			return 0, err
		}
	}
	err := j.log.Append(ctx, []eventlog.Part{{Data: data}})
	return j.log.last(), err
}

func (j *fakeJournal) Stats(ctx context.Context) (journal.Stats, error) {
	s, err := j.fakePartition.Stats(ctx)
	s.First, s.Readers = j.first, j.readers
	return s, err
}

// modelID is a distinct id of a project.
type modelID struct {
	project int64
	id      string
}

// modelState is what the database should know.
type modelState struct {
	marks  map[modelID]mark
	open   map[string]Erasure // requested and not carried out
	done   map[string]bool
	people map[int64][]string // distinct ids by person
	cursor uint64             // of the pipeline
}

func (m modelState) clone() modelState {
	m.marks, m.open, m.done, m.people = maps.Clone(m.marks), maps.Clone(m.open), maps.Clone(m.done), maps.Clone(m.people)
	return m
}

// journalHistory is a database and a journal of one node with random erasures, failures, restarts
// and restored backups, and what the service should know of them.
type journalHistory struct {
	t        *testing.T
	r        *rand.Rand
	d        *db.DB
	failures *dbtest.Failures
	j        *fakeJournal
	s        *Service
	n        int
	now      time.Time

	modelState
	passed  uint64 // no reader asks for records through this one
	backups []journalBackup
	letters []deadletter.Entry
	swept   int64
	steps   map[string]int
}

type journalBackup struct {
	snapshot
	modelState
}

// TestJournalHistories compares verdicts, lists and dead letters with those of a plain model,
// whenever nothing is left to be done.
func TestJournalHistories(t *testing.T) {
	t.Parallel()
	seeds := uint64(10)
	if testing.Short() {
		seeds = 5
	}
	all := map[string]int{}
	for seed := range seeds {
		d, failures := dbtest.FailingSQLite(t)
		h := &journalHistory{
			t: t, r: rand.New(rand.NewPCG(seed, 5)), d: d, failures: failures, j: newFakeJournal("journal"),
			now: time.Unix(1_700_000_000, 0).UTC(), steps: all,
			modelState: modelState{marks: map[modelID]mark{}, open: map[string]Erasure{}, done: map[string]bool{}, people: map[int64][]string{}},
		}
		h.start()
		for step := range 80 {
			name := h.step()
			all[name]++
			if t.Failed() {
				t.Fatalf("seed %d, step %d: %s", seed, step, name)
			}
		}
	}
	for _, name := range []string{"erase", "carry out", "restart", "restore", "housekeep", "statement failed", "append failed", "removal failed", "late id", "recovered"} {
		if all[name] < 3 {
			t.Errorf("%q happened %d times", name, all[name])
		}
	}
}

func (h *journalHistory) step() string {
	switch n := h.r.IntN(100); {
	case n < 15:
		h.j.log.addRequests(1 + h.r.IntN(9))
		return "requests"
	case n < 40:
		h.request()
		return "erase"
	case n < 60:
		h.carryOut()
		return "carry out"
	case n < 68:
		h.process()
		return "process"
	case n < 78:
		h.addLetters()
		h.carryOut()
		h.housekeep()
		return "housekeep"
	case n < 85:
		h.start()
		return "restart"
	case n < 92:
		h.backups = append(h.backups, journalBackup{takeSnapshot(h.t, h.d), h.clone()})
		return "backup"
	}
	if len(h.backups) == 0 {
		return "no backup"
	}
	n := h.r.IntN(len(h.backups))
	h.backups[n].restore(h.t, h.d)
	h.modelState = h.backups[n].clone()
	h.backups = h.backups[:n+1]
	h.start()
	return "restore"
}

// start starts a service as a new process does: it recovers what the journal knows and the database does
// not, before events behind the cursor are processed.
func (h *journalHistory) start() {
	h.s = New(h.d, h.j, h, zap.NewNop())
	h.s.FollowProgress(func() uint64 { return h.cursor })
	h.swept = 0
	h.passed = h.j.first - 1
	for h.try(func() error { return h.s.recover(h.t.Context(), h.cursor) }) != nil {
	}

	for _, e := range h.erasuresBehind(h.cursor) {
		if !h.done[e.ID] {
			h.steps["recovered"]++
			h.finish(e.ID)
		}
	}
	h.check()
}

// request requests an erasure of a person or of an id without one.
func (h *journalHistory) request() {
	h.n++
	h.now = h.now.Add(time.Duration(h.r.IntN(3)) * time.Minute)
	e := Erasure{ID: fmt.Sprintf("erasure %03d", h.n), RequestedAt: h.now}
	e.ProjectID, e.PersonID, e.Events = 1+h.r.Int64N(2), int64(h.n), h.r.IntN(2) == 0
	e.DistinctIDs = []string{fmt.Sprint("u", h.r.IntN(6))}
	if h.r.IntN(3) == 0 {
		e.DistinctIDs = append(e.DistinctIDs, fmt.Sprint("w", h.r.IntN(6)))
	}
	h.people[e.PersonID] = slices.Clone(e.DistinctIDs)
	if err := h.s.store.insert(h.t.Context(), &e); err != nil {
		h.t.Fatal(err)
	}
	h.open[e.ID] = e
}

// carryOut runs the job until it has done everything.
func (h *journalHistory) carryOut() {
	for h.try(func() error { return h.s.processOpen(h.t.Context(), h.t.Context()) }) != nil {
	}
	for id := range h.open {
		h.finish(id)
	}
	h.check()
}

// try runs do, in which some things fail at times.
func (h *journalHistory) try(do func() error) error {
	failing := errors.New("failing")
	if h.r.IntN(2) == 0 {
		h.failures.FailAt(1 + h.r.IntN(25))
	}
	h.j.onAppend = func() error {
		if h.r.IntN(6) == 0 {
			h.steps["append failed"]++
			return failing
		}
		return nil
	}
	err := do()
	h.j.onAppend = nil
	failed := h.failures.HasFailed()
	if failed {
		h.steps["statement failed"]++
	}
	if err != nil && !failed && !errors.Is(err, failing) && !errors.Is(err, errRemoval) {
		h.t.Fatal(err)
	}
	return err
}

var errRemoval = errors.New("removal fails")

// Get implements Persons. Some persons get a distinct id after the request.
func (h *journalHistory) Get(_ context.Context, _ int64, ref string) (persons.Person, error) {
	number, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		return persons.Person{}, err
	}
	ids, ok := h.people[number]
	if !ok {
		return persons.Person{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	if h.r.IntN(4) == 0 && len(ids) < 4 {
		h.steps["late id"]++
		h.people[number] = append(slices.Clone(ids), fmt.Sprintf("late%d-%d", number, len(ids)))
	}
	return persons.Person{DistinctIDs: slices.Clone(h.people[number])}, nil
}

// Remove implements Persons. When data is deleted, transactions that begin now know the erasure.
func (h *journalHistory) Remove(_ context.Context, r *persons.Removal) error {
	for _, id := range r.DistinctIDs {
		if v := h.s.Verdict(r.ProjectID, id, 0); v == Keep || r.Events && v != DropData {
			h.t.Errorf("data of %q is deleted and the verdict for its events is %d", id, v)
		}
	}
	for _, id := range h.people[r.PersonID] {
		if !slices.Contains(r.DistinctIDs, id) {
			h.t.Errorf("person %d is deleted without its id %q", r.PersonID, id)
		}
	}
	if h.r.IntN(6) == 0 {
		h.steps["removal failed"]++
		return errRemoval
	}
	delete(h.people, r.PersonID)
	return nil
}

// erasuresBehind returns the newest record of each erasure behind a number.
func (h *journalHistory) erasuresBehind(after uint64) map[string]Erasure {
	found := map[string]Erasure{}
	for _, r := range h.j.log.records {
		if r.Seq <= after || r.Seq < h.j.first || !event.IsErasure(r.Data) {
			continue
		}
		e, err := event.ParseErasure(r.Data)
		if err != nil {
			h.t.Fatal(err)
		}
		found[e.ID] = Erasure{
			Removal: persons.Removal{ProjectID: e.ProjectID, DistinctIDs: e.DistinctIDs, Events: e.Events}, ID: e.ID, RequestedAt: e.At, Seq: r.Seq,
		}
	}
	return found
}

// finish notes that an erasure was carried out with its newest record.
func (h *journalHistory) finish(id string) {
	e, ok := h.erasuresBehind(0)[id]
	if !ok {
		h.t.Fatalf("%s has no record", id)
	}
	for _, distinctID := range e.DistinctIDs {
		k := modelID{e.ProjectID, distinctID}
		m := h.marks[k]
		m.personSeq = max(m.personSeq, e.Seq)
		if m.personAt.Before(e.RequestedAt) {
			m.personAt = e.RequestedAt
		}
		if e.Events {
			m.eventsSeq = max(m.eventsSeq, e.Seq)
			if m.eventsAt.Before(e.RequestedAt) {
				m.eventsAt = e.RequestedAt
			}
		}
		h.marks[k] = m
	}
	delete(h.open, id)
	h.done[id] = true
}

// process moves the cursor of the pipeline, some readers, and the oldest record.
func (h *journalHistory) process() {
	last := h.j.log.last()
	h.cursor += h.r.Uint64N(last - h.cursor + 1)
	h.j.readers = []journal.ReaderStats{
		{Name: "metrics", Position: journal.Position{Seq: 0}}, // filters no events
		{Name: "follower/actions", Position: journal.Position{Seq: h.cursor - min(h.cursor, h.r.Uint64N(5))}},
		{Name: "p1/sink/archive", Position: journal.Position{Seq: h.cursor - min(h.cursor, h.r.Uint64N(5))}},
	}
}

// housekeep forgets what all readers have passed, and deletes dead letters of erased events.
func (h *journalHistory) housekeep() {
	if h.r.IntN(3) == 0 {
		h.process()
	}
	for h.try(func() error { return h.s.housekeep(h.t.Context()) }) != nil {
	}

	passed := h.cursor
	for _, r := range h.j.readers {
		if r.Name != "metrics" {
			passed = min(passed, r.Position.Seq)
		}
	}
	h.passed = max(h.passed, passed)
	remembered := map[int64]bool{}
	for k, m := range h.marks {
		if m.personSeq > passed && m.personSeq >= h.j.first {
			remembered[k.project] = true
		}
	}
	if h.s.Any() != (len(remembered) > 0) || h.s.Concerns(1) != remembered[1] || h.s.Concerns(2) != remembered[2] {
		h.t.Errorf("any %v, of project 1 %v, of project 2 %v; want %v", h.s.Any(), h.s.Concerns(1), h.s.Concerns(2), remembered)
	}

	for i := range h.letters {
		if e := &h.letters[i]; e.ID > h.swept && e.ReceivedAt.Before(h.marks[modelID{e.ProjectID, e.DistinctID}].eventsAt) {
			e.ID = 0
		}
	}
	h.letters = slices.DeleteFunc(h.letters, func(e deadletter.Entry) bool { return e.ID == 0 })
	list, err := h.s.deadLetters.After(h.t.Context(), 0, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	same := func(a, b deadletter.Entry) bool { return a.ID == b.ID }
	if !slices.EqualFunc(list, h.letters, same) {
		h.t.Errorf("%d dead letters are left, want %d", len(list), len(h.letters))
	}
	for i := range list {
		h.swept = max(h.swept, list[i].ID)
	}
	if h.r.IntN(2) == 0 { // retention of the journal
		h.j.first += h.r.Uint64N(passed - min(passed, h.j.first-1) + 1)
	}
}

// addLetters adds dead letters, of events that were received around now.
func (h *journalHistory) addLetters() {
	for range h.r.IntN(5) {
		h.n++
		ev := &sdk.Event{
			ProjectID: 1 + h.r.Int64N(2), UUID: fmt.Sprint("letter ", h.n), Name: "event", DistinctID: fmt.Sprint("u", h.r.IntN(6)),
			ReceivedAt: h.now.Add(time.Duration(h.r.IntN(7)-4) * time.Minute), Properties: []byte(`{}`),
		}
		if err := h.s.deadLetters.Add(h.t.Context(), deadletter.New("sink/archive", ev, &sdk.Error{}, h.now)); err != nil {
			h.t.Fatal(err)
		}
	}
	list, err := h.s.deadLetters.After(h.t.Context(), 0, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	h.letters = list
}

// check compares what is known with the model, if the database has nothing open that has begun.
func (h *journalHistory) check() {
	h.t.Helper()
	ctx := h.t.Context()
	var left int
	err := h.d.Read(ctx).NewRaw("SELECT count(*) FROM erasures WHERE done_at IS NULL OR distinct_ids <> '[]'").Scan(ctx, &left)
	if err != nil || left != len(h.open) {
		h.t.Errorf("%d erasures are open or still have distinct ids, want %d (%v)", left, len(h.open), err)
	}

	// Events behind what all readers have passed.
	if id := h.s.journalID(); id != h.j.log.id {
		h.t.Errorf("the service works for the journal %q", id)
	}
	end := h.s.Begin()
	for k, m := range h.marks {
		if m.personSeq > h.passed && (!h.s.Any() || !h.s.Concerns(k.project)) {
			h.t.Errorf("readers may meet events of %+v: any %v, of its project %v", k, h.s.Any(), h.s.Concerns(k.project))
		}
	}
	for project := range int64(3) {
		for _, id := range append(slices.Clone(modelIDs), "late") {
			m := h.marks[modelID{project, id}]
			for _, seq := range []uint64{h.passed + 1, m.personSeq - min(1, m.personSeq), m.personSeq, m.eventsSeq - min(1, m.eventsSeq), m.eventsSeq, h.j.log.last() + 1} {
				if seq <= h.passed || len(h.open) > 0 {
					continue // open erasures may have marks
				}
				want := Keep
				switch {
				case seq < m.eventsSeq:
					want = DropData
				case seq < m.personSeq:
					want = Detach
				}
				if got := h.s.Verdict(project, id, seq); got != want || h.s.Dropped(project, id, seq) != (want == DropData) {
					h.t.Errorf("project %d, %q, record %d: verdict %d, want %d of %+v", project, id, seq, got, want, m)
				}
			}
		}
	}
	end()
	if len(h.open) > 0 {
		return
	}

	// Events without a record.
	for k, m := range h.marks {
		for _, at := range []time.Time{m.eventsAt.Add(-time.Second), m.eventsAt, m.personAt.Add(-time.Second), m.personAt} {
			want := Keep
			switch {
			case at.Before(m.eventsAt):
				want = DropData
			case at.Before(m.personAt):
				want = Detach
			}
			got, err := h.s.VerdictAt(ctx, k.project, k.id, at)
			dropped, droppedErr := h.s.DroppedAt(ctx, k.project, k.id, at)
			if got != want || dropped != (want == DropData) || err != nil || droppedErr != nil {
				h.t.Errorf("%+v at %s: verdict %d, dropped %v (%v, %v); want %d of %+v", k, at, got, dropped, err, droppedErr, want, m)
			}
		}
	}
	if v, err := h.s.VerdictAt(ctx, 1, "nobody", time.Time{}); v != Keep || err != nil {
		h.t.Errorf("an id that was never erased: verdict %d (%v)", v, err)
	}
	h.checkList()
}

var modelIDs = []string{"u0", "u1", "u2", "u3", "u4", "u5", "w0", "w1", "w2", "w3", "w4", "w5"}

// checkList compares the list for files outside of the server.
func (h *journalHistory) checkList() {
	ctx := h.t.Context()
	key, err := h.s.store.key(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := List(ctx, h.d)
	if err != nil || len(got) != len(h.marks) {
		h.t.Fatalf("list has %d entries (%v), want %d", len(got), err, len(h.marks))
	}
	listed := map[string]Record{}
	for _, r := range got {
		listed[fmt.Sprint(r.ProjectID, r.Hash)] = r
	}
	for k, m := range h.marks {
		hash := hashID(key, k.project, k.id)
		r := listed[fmt.Sprint(k.project, hex.EncodeToString(hash[:]))]
		if !r.PersonAt.Equal(m.personAt) || !r.EventsAt.Equal(m.eventsAt) {
			h.t.Errorf("%+v is listed as %+v, want %+v", k, r, m)
		}
	}
}

// A request waits until the person is erased, and says when that takes longer.
func TestRequestsOnAJournal(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j, p := newFakeJournal("requests"), &fakePersons{}
		var mu sync.Mutex
		var full error
		j.onAppend = func() error { mu.Lock(); defer mu.Unlock(); return full }
		logged, logs := observer.New(zap.WarnLevel)
		s := New(d, j, p, zap.New(logged))
		ended, end := context.WithCancel(t.Context())
		end()
		if err := s.Erase(ended, persons.Removal{ProjectID: 1, DistinctIDs: []string{"x"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("a request without time: %v", err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop(context.Background()) })
		if err := s.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 7, DistinctIDs: []string{"u"}, Events: true}); err != nil {
			t.Fatal(err)
		}
		if p.removed["u"] != 1 || s.Verdict(1, "u", 0) != DropData {
			t.Errorf("answered after %d removals, with the verdict %d", p.removed["u"], s.Verdict(1, "u", 0))
		}

		waitFor(t, func() bool { // the first round of the job ends, whose statements may still run
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.processing) == 0 && len(s.waiting) == 0
		})
		if logs.Len() > 0 {
			t.Errorf("logged without a failure: %+v", logs.All())
		}

		mu.Lock()
		full = fault.New(fault.Unavailable, "journal_full", "The journal is full.")
		mu.Unlock()
		err := s.Erase(t.Context(), persons.Removal{ProjectID: 1, PersonID: 8, DistinctIDs: []string{"w"}})
		if f := fault.From(err); f == nil || f.Kind != fault.Unavailable || f.Code != "erasure_pending" || f.RetryAfter <= 0 {
			t.Errorf("while the journal is full: %v, want erasure_pending and a time to come back", err)
		}
		waitFor(t, func() bool { return logs.FilterMessage("erasure delayed").Len() > 0 })
		mu.Lock()
		full = nil
		mu.Unlock()
		waitFor(t, func() bool { return len(openErasures(t, s)) == 0 })
		if len(s.waiting) > 0 || p.removed["w"] != 1 || s.Verdict(1, "w", 0) != Detach {
			t.Errorf("%d wait; %d removals, verdict %d", len(s.waiting), p.removed["w"], s.Verdict(1, "w", 0))
		}
	})
}

// Readers wait for Recover, or for the end of their context.
func TestWaitRecovered(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	ended, end := context.WithCancel(t.Context())
	end()
	s := New(d, newFakeJournal("wait"), &fakePersons{}, zap.NewNop())
	p := newOwner(d, &fakeLog{id: "wait/0"}, &fakePersons{}, cursorAt(0), 5)
	for name, r := range map[string]interface {
		Recover(ctx context.Context, after uint64) bool
		WaitRecovered(ctx context.Context) bool
	}{"journal": s, "partition": p} {
		if r.WaitRecovered(ended) {
			t.Errorf("%s: recovered before Recover", name)
		}
		if r.Recover(ended, 0) || r.WaitRecovered(ended) {
			t.Errorf("%s: recovered without time", name)
		}
		for range 2 {
			if !r.Recover(t.Context(), 0) || !r.WaitRecovered(t.Context()) {
				t.Errorf("%s: not recovered", name)
			}
		}
	}
}

// Before the pipeline runs, nothing is forgotten.
func TestPassed(t *testing.T) {
	t.Parallel()
	s := New(dbtest.SQLite(t), newFakeJournal("passed"), &fakePersons{}, zap.NewNop())
	at := func(name string, seq uint64) journal.ReaderStats {
		return journal.ReaderStats{Name: name, Position: journal.Position{Seq: seq}}
	}
	if got := s.passed(journal.Stats{Readers: []journal.ReaderStats{at("follower/a", 9)}}); got != 0 {
		t.Errorf("%d without a pipeline, want 0", got)
	}
	s.FollowProgress(func() uint64 { return 8 })
	for _, c := range []struct {
		readers []journal.ReaderStats
		want    uint64
	}{
		{nil, 8},
		{[]journal.ReaderStats{at("follower/a", 9)}, 8},
		{[]journal.ReaderStats{at("follower/a", 5), at("follower/b", 7)}, 5},
		{[]journal.ReaderStats{at("p1/sink/a", 3), at("follower/a", 5)}, 3},
		{[]journal.ReaderStats{at("worker", 2)}, 8},
	} {
		if got := s.passed(journal.Stats{Readers: c.readers}); got != c.want {
			t.Errorf("%+v: %d, want %d", c.readers, got, c.want)
		}
	}
}
