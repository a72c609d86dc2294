package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// TestDeliveryHistories delivers random events to sinks that fail in every way, over restarts,
// pauses, replays and replaced sinks. At the end each event is stored, a dead letter or erased,
// the order that the sink declares was kept, and the cursor is at the end.
func TestDeliveryHistories(t *testing.T) {
	t.Parallel()
	kinds := map[string]sdk.SinkProperties{
		"no order":      {Ordering: sdk.OrderNone, MaxInFlight: 3, MaxEvents: 3},
		"order per key": {Ordering: sdk.OrderPerKey, MaxInFlight: 4, MaxEvents: 4},
		"total order":   {Ordering: sdk.OrderTotal, MaxInFlight: 4, MaxEvents: 5},
		"staged":        {Commit: sdk.CommitOnFlush, MaxEvents: 4, MaxStagedEvents: 12, MaxStagedAge: 20 * time.Millisecond},
		"staged bytes":  {Commit: sdk.CommitOnFlush, MaxEvents: 7, MaxStagedBytes: 2000, MaxStagedAge: 20 * time.Millisecond},
	}
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for name, props := range kinds {
		for seed := range seeds {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				h := &history{
					t: t, r: rand.New(rand.NewPCG(seed, uint64(len(name)))), d: dbtest.SQLite(t), log: newLiveLog(), erased: &erasedIDs{},
					sink: newHistorySink(props, seed), sinks: &changingSinks{changed: make(chan struct{})}, events: map[string]historyEvent{},
				}
				h.sink.log = h.log
				h.sinks.set(h.sink)
				h.start()
				for range 40 {
					h.step()
				}
				h.finish()
			})
		}
	}
}

// history is a log, a sink and what it should have.
type history struct {
	t      *testing.T
	r      *rand.Rand
	d      *db.DB
	log    *liveLog
	erased *erasedIDs
	sink   *historySink
	sinks  *changingSinks
	s      *Service

	events   map[string]historyEvent // by name
	names    []string                // in the order of the log
	damaged  int                     // ranges
	paused   bool
	replayed []string
}

type historyEvent struct {
	id         string
	historical bool
	erased     bool // before it was sent, or not: it may be missing
}

func (h *history) start() {
	cfg := DefaultConfig()
	cfg.Start, cfg.RetryMin, cfg.RetryMax, cfg.ConfigRetry = "begin", time.Millisecond, 3*time.Millisecond, 5*time.Millisecond
	cfg.Linger, cfg.MaxInternal = time.Millisecond, 2
	s, err := NewService(cfg, event.DefaultLimits(), h.log, h.d, h.sinks, NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		h.t.Fatal(err)
	}
	s.RespectErasures(h.erased)
	if err := s.Start(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { h.stop(s) })
	h.s = s
}

func (h *history) stop(s *Service) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		h.t.Error("stop:", err)
	}
}

func (h *history) step() {
	switch n := h.r.IntN(100); {
	case n < 50:
		h.append(h.r.IntN(5) == 0)
	case n < 55:
		h.log.add(journal.Record{Data: []byte("not a record")}, false)
	case n < 58:
		h.log.add(journal.Record{}, true)
		h.damaged++
	case n < 66:
		h.waitCalls(1 + h.r.IntN(6))
	case n < 72:
		if h.paused = !h.paused; h.paused {
			must(h.t, h.s.Pause(h.t.Context(), "test", "maintenance"))
		} else {
			must(h.t, h.s.Resume(h.t.Context(), "test"))
		}
	case n < 78:
		h.stop(h.s)
		h.erase()
		h.start()
	case n < 83:
		h.sink = h.sink.replacement()
		h.sinks.set(h.sink)
	case n < 86:
		h.sinks.set()
		h.sinks.set(h.sink)
	case n < 91:
		h.sink.reopen()
	default:
		h.replay()
	}
}

// append adds a request with some events, or one of an import.
func (h *history) append(historical bool) {
	var items []string
	for range 1 + h.r.IntN(6) {
		name := fmt.Sprint("e", len(h.names))
		switch h.r.IntN(40) {
		case 0:
			name = "poison" + name
		case 1:
			name = "panic" + name
		case 2:
			if len(h.names)%3 == 0 {
				name = "crash" + name
			}
		}
		id := fmt.Sprint("u", h.r.IntN(5))
		h.events[name] = historyEvent{id: id, historical: historical}
		h.names = append(h.names, name)
		items = append(items, fmt.Sprintf(`{"event":%q,"distinct_id":%q}`, name, id))
	}
	rec := event.Record{
		ReceivedAt: time.Now(), ProjectID: 1, RequestID: [16]byte{byte(len(h.names)), byte(len(h.names) >> 8), 1}, Historical: historical,
		Items: []byte("[" + strings.Join(items, ",") + "]"),
	}
	h.log.add(journal.Record{Data: rec.Append(nil)}, false)
}

// waitCalls waits until the sink was called so often, if there is something to send.
func (h *history) waitCalls(n int) {
	if h.paused {
		return
	}
	before := h.sink.callsNow()
	for deadline := time.Now().Add(20 * time.Millisecond); h.sink.callsNow() < before+n && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// erase erases a person while nothing is sent: no event from before is sent from now on.
func (h *history) erase() {
	if h.r.IntN(2) == 0 {
		return
	}
	id := fmt.Sprint("u", h.r.IntN(5))
	h.erased.add(id, h.log.last()+1)
	h.sink.mu.Lock()
	defer h.sink.mu.Unlock()
	for name, e := range h.events {
		if e.id == id {
			e.erased = true
			h.events[name] = e
			h.sink.forbidden[name] = true
		}
	}
}

// replay sends one event between the batches.
func (h *history) replay() {
	name := fmt.Sprint("replay", len(h.replayed))
	ctx, cancel := context.WithTimeout(h.t.Context(), 100*time.Millisecond)
	defer cancel()
	ev := sdk.Event{UUID: fmt.Sprintf("0190a5a2-7b3c-7000-8000-%012d", len(h.replayed)), ProjectID: 1, Name: name, DistinctID: "r", Properties: []byte("{}")}
	if err := h.s.Replay(ctx, "test", ev, uint64(h.r.IntN(5)), 1); err != nil {
		return
	}
	if stored := h.sink.list(); !slices.Contains(stored, name) {
		h.t.Errorf("the replay of %s has succeeded, and the sink has not stored it", name)
	}
	h.replayed = append(h.replayed, name)
}

// finish lets the sink work, waits until everything is done, and compares.
func (h *history) finish() {
	h.log.stopFailing()
	h.sink.stopFailing()
	must(h.t, h.s.Resume(h.t.Context(), "test"))
	h.wait("everything is delivered", func() bool {
		at, live := h.log.position("sink/test")
		imports, importing := h.log.position("historical/sink/test")
		return live && at.Seq == h.log.last() && (!importing || imports.Seq == at.Seq)
	})
	h.append(false) // the cursor of imports ends when that of live events has the highest sequence number
	h.wait("the last request is delivered", func() bool {
		at, _ := h.log.position("sink/test")
		_, importing := h.log.position("historical/sink/test")
		return at.Seq == h.log.last() && !importing
	})

	all, err := h.s.Status(h.t.Context())
	if err != nil || len(all) != 1 || all[0].LagRecords != 0 || all[0].Paused != nil {
		h.t.Errorf("status %+v (%v)", all, err)
	}
	h.stop(h.s)
	if h.sink.caller != h.sink.number {
		h.t.Errorf("instance %d of the sink got the last events, want %d", h.sink.caller, h.sink.number)
	}
	h.compare()
	for _, problem := range h.sink.problems {
		h.t.Error(problem)
	}
}

func (h *history) wait(what string, ok func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("never: %s. Last record %d, status %+v", what, h.log.last(), h.s.StatusOf(nil))
		}
	}
}

func (h *history) compare() {
	var rows []struct{ Source, Event, Code string }
	err := h.d.Read(h.t.Context()).NewRaw("SELECT source, event, code FROM dead_letters").Scan(h.t.Context(), &rows)
	must(h.t, err)
	letters, damaged := map[string]string{}, 0
	for _, r := range rows {
		switch {
		case r.Source != "sink/test":
			h.t.Errorf("dead letter %+v", r)
		case r.Event == "":
			damaged++
		default:
			letters[r.Event] = r.Code
		}
	}
	if damaged != h.damaged {
		h.t.Errorf("%d dead letters of damaged ranges, want %d", damaged, h.damaged)
	}

	stored := map[string]int{} // first place
	for i, name := range h.sink.list() {
		if _, ok := stored[name]; !ok {
			stored[name] = i
		}
	}
	last := map[string]int{} // place of the event before, by what is ordered
	for _, name := range h.names {
		e := h.events[name]
		place, ok := stored[name]
		bad := badKind(name)
		code, letter := letters[name]
		switch {
		case bad != "" && ok:
			h.t.Errorf("%s was stored", name)
		case bad != "" && (!letter || code != bad) && !e.erased:
			h.t.Errorf("%s: dead letter %v with code %q, want %q", name, letter, code, bad)
		case bad == "" && letter:
			h.t.Errorf("%s is a dead letter with code %q", name, code)
		case bad == "" && !ok && !e.erased:
			h.t.Errorf("%s of %s was lost", name, e.id)
		}
		if !ok {
			continue
		}
		order := fmt.Sprint(e.historical)
		switch ordering := (&target{sink: h.sink}).ordering(); ordering {
		case sdk.OrderNone:
			continue
		case sdk.OrderPerKey:
			order += e.id
		case sdk.OrderTotal:
		}
		if before, ok := last[order]; ok && place < before {
			h.t.Errorf("%s was stored before one that came earlier", name)
		}
		last[order] = place
	}
}

// badKind is the code of the dead letter of an event that the sink never takes.
func badKind(name string) string {
	switch {
	case strings.HasPrefix(name, "poison"):
		return "constraint"
	case strings.HasPrefix(name, "panic"):
		return "panic"
	case strings.HasPrefix(name, "crash"):
		return codeCrash
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// liveLog is a log in memory that grows. Its operations fail at times.
type liveLog struct {
	mu      sync.Mutex
	r       *rand.Rand // nil: nothing fails
	records []journal.Record
	damaged map[uint64]bool
	readers map[string]journal.Position
	grown   chan struct{}
}

func newLiveLog() *liveLog {
	return &liveLog{
		r: rand.New(rand.NewPCG(7, 7)), damaged: map[uint64]bool{}, readers: map[string]journal.Position{}, grown: make(chan struct{}),
	}
}

func (l *liveLog) add(r journal.Record, damaged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Seq = uint64(len(l.records) + 1)
	l.records = append(l.records, r)
	// Two ranges that touch would be one.
	l.damaged[r.Seq] = damaged
	if damaged {
		l.records = append(l.records, journal.Record{Seq: r.Seq + 1, Data: []byte("not a record")})
	}
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *liveLog) last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.records))
}

func (l *liveLog) stopFailing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.r = nil
}

func (l *liveLog) position(reader string) (journal.Position, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.readers[reader]
	return p, ok
}

var errLog = errors.New("the log is away")

// enter locks the log; it fails at times.
func (l *liveLog) enter() (leave func(), err error) {
	l.mu.Lock()
	if l.r != nil && l.r.IntN(20) == 0 {
		l.mu.Unlock()
		return nil, errLog
	}
	return l.mu.Unlock, nil
}

func (l *liveLog) Read(_ context.Context, after uint64, maxRecords, _ int) ([]journal.Record, error) {
	leave, err := l.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []journal.Record
	for seq := after + 1; seq <= uint64(len(l.records)) && len(out) < min(maxRecords, 5); seq++ {
		if l.damaged[seq] {
			if len(out) == 0 {
				return nil, &journal.DamagedError{First: seq, Last: seq}
			}
			break
		}
		out = append(out, l.records[seq-1])
	}
	return out, nil
}

func (l *liveLog) Wait(ctx context.Context, after uint64) error {
	for {
		l.mu.Lock()
		n, grown := len(l.records), l.grown
		l.mu.Unlock()
		if uint64(n) > after {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *liveLog) Register(_ context.Context, name string, from journal.Start) (journal.Position, error) {
	leave, err := l.enter()
	if err != nil {
		return journal.Position{}, err
	}
	defer leave()
	p, ok := l.readers[name]
	if !ok {
		if from == journal.End {
			p.Seq = uint64(len(l.records))
		}
		l.readers[name] = p
	}
	return p, nil
}

func (l *liveLog) Commit(_ context.Context, name string, p journal.Position) error {
	leave, err := l.enter()
	if err != nil {
		return err
	}
	defer leave()
	switch was, ok := l.readers[name]; {
	case !ok:
		return fault.New(fault.NotFound, "reader_not_found", "no such reader")
	case p.Before(was) || p.Count < was.Count:
		return fault.New(fault.Conflict, "cursor_backwards", "backwards")
	}
	l.readers[name] = p
	return nil
}

func (l *liveLog) Unregister(_ context.Context, name string) error {
	leave, err := l.enter()
	if err != nil {
		return err
	}
	defer leave()
	delete(l.readers, name)
	return nil
}

func (l *liveLog) Stats(context.Context) (journal.Stats, error) {
	leave, err := l.enter()
	if err != nil {
		return journal.Stats{}, err
	}
	defer leave()
	out := journal.Stats{ID: "log", First: 1, Last: uint64(len(l.records))}
	for name, p := range l.readers {
		out.Readers = append(out.Readers, journal.ReaderStats{Name: name, Position: p, Lag: int64(out.Last - p.Seq)})
	}
	return out, nil
}

// erasedIDs are erased persons: the records before a number are erased.
type erasedIDs struct {
	mu     sync.Mutex
	before map[string]uint64
}

func (e *erasedIDs) add(id string, before uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.before == nil {
		e.before = map[string]uint64{}
	}
	e.before[id] = before
}

func (e *erasedIDs) WaitRecovered(context.Context) bool { return true }

func (e *erasedIDs) Any() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.before) > 0
}

func (e *erasedIDs) Dropped(_ int64, id string, seq uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return seq < e.before[id]
}

// changingSinks is a set of sinks that changes.
type changingSinks struct {
	mu      sync.Mutex
	list    []Sink
	changed chan struct{}
}

func (s *changingSinks) Sinks() []Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *changingSinks) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *changingSinks) set(list ...Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	close(s.changed)
	s.changed = make(chan struct{})
}

// historySink is a sink that stores events, and fails in every way that the contract allows.
type historySink struct {
	*historyStore

	number int // of the instance
}

func (s *historySink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	s.mu.Lock()
	if s.number < s.caller {
		s.problem("instance %d was called after instance %d", s.number, s.caller)
	}
	s.caller = s.number
	s.mu.Unlock()
	return s.write(ctx, b)
}

// historyStore is what the instances of a sink share.
type historyStore struct {
	props sdk.SinkProperties

	mu        sync.Mutex
	r         *rand.Rand // nil: nothing fails but what never succeeds
	session   uint64
	caller    int // the instance that was called last
	calls     int
	inFlight  int
	stored    []string
	staged    []stagedEvent
	content   map[string]string // of batches, by id
	forbidden map[string]bool   // erased while nothing was sent
	log       *liveLog
	problems  []string
}

type stagedEvent struct {
	seq  uint64
	name string
}

func newHistorySink(props sdk.SinkProperties, seed uint64) *historySink {
	store := &historyStore{
		props: props, r: rand.New(rand.NewPCG(seed, 3)), session: 1, content: map[string]string{}, forbidden: map[string]bool{},
	}
	return &historySink{historyStore: store}
}

// replacement is a new instance with the same store, as after a change of the settings.
func (s *historySink) replacement() *historySink {
	s.reopen()
	return &historySink{s.historyStore, s.number + 1}
}

func (s *historyStore) Name() string                    { return "test" }
func (s *historyStore) Properties() sdk.SinkProperties  { return s.props }
func (s *historyStore) Ready(ctx context.Context) error { return ctx.Err() }

func (s *historyStore) Session() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// reopen opens the plugin anew: what was staged is lost.
func (s *historyStore) reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose()
}

func (s *historyStore) lose() {
	s.session++
	s.staged = nil
}

func (s *historyStore) callsNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *historyStore) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stored)
}

func (s *historyStore) stopFailing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r = nil
}

func (s *historyStore) problem(format string, args ...any) {
	if len(s.problems) < 5 {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}

// begin checks a batch.
func (s *historyStore) begin(b *sdk.Batch, names []string) {
	s.calls++
	s.inFlight++
	most := s.props.MaxInFlight
	if s.props.Ordering == sdk.OrderTotal || s.props.Commit == sdk.CommitOnFlush {
		most = 1
	}
	if s.inFlight > most {
		s.problem("%d calls at once, of at most %d", s.inFlight, most)
	}
	if len(names) == 0 || len(names) > s.props.MaxEvents || b.LastSeq-b.FirstSeq+1 != uint64(len(names)) || b.FirstSeq == 0 || b.Attempt == 0 {
		s.problem("a batch of %d events from %d to %d, attempt %d", len(names), b.FirstSeq, b.LastSeq, b.Attempt)
	}
	if at, _ := s.log.position("sink/test"); b.FirstSeq <= at.Count && !strings.HasPrefix(names[0], "replay") {
		s.problem("a batch from number %d, while %d are settled", b.FirstSeq, at.Count)
	}
	content := strings.Join(names, " ")
	if before, ok := s.content[fmt.Sprint(b.ID)]; ok && before != content {
		s.problem("batch %x had the events %q and has %q", b.ID, before, content)
	}
	s.content[fmt.Sprint(b.ID)] = content
	for _, name := range names {
		if s.forbidden[name] {
			s.problem("the erased event %s was sent", name)
		}
	}
}

func (s *historyStore) write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	names := strings.Fields(namesOf(b))
	s.mu.Lock()
	s.begin(b, names)
	s.mu.Unlock()
	time.Sleep(100 * time.Microsecond) // others may be called
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--

	has := func(kind string) int {
		return slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, kind) })
	}
	if has("crash") >= 0 {
		s.lose()
		return sdk.WriteResult{}, sdk.Errorf(sdk.ClassTransient, codeDied, "the process ended")
	}
	if has("panic") >= 0 {
		return reject(sdk.ClassInternal, "panic")
	}
	if i := has("poison"); i >= 0 && s.props.Commit != sdk.CommitOnFlush {
		if s.r != nil && s.r.IntN(2) == 0 || len(names) == 1 {
			return reject(sdk.ClassPermanent, "constraint")
		}
		result := sdk.WriteResult{Outcome: sdk.Partial}
		for i, name := range names {
			if strings.HasPrefix(name, "poison") {
				result.Failures = append(result.Failures, sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassPermanent, "constraint", "no")})
			} else {
				s.stored = append(s.stored, name)
			}
		}
		slices.Reverse(result.Failures)
		return result, nil
	}

	if s.r != nil {
		switch s.r.IntN(24) {
		case 0:
			return reject(sdk.ClassTransient, "busy")
		case 1:
			return reject(sdk.ClassConfig, "wrong_password")
		case 2:
			s.lose()
			return sdk.WriteResult{}, sdk.Errorf(sdk.ClassTransient, codeDown, "the process does not run")
		case 3: // it stores a part, and the answer is lost
			if s.props.Commit != sdk.CommitOnFlush {
				s.stored = append(s.stored, names[:s.r.IntN(len(names)+1)]...)
			}
			return sdk.WriteResult{}, errors.New("connection lost")
		case 4: // the end of the batch fails
			if n := s.r.IntN(len(names)); s.props.Commit != sdk.CommitOnFlush {
				s.stored = append(s.stored, names[:n]...)
				result := sdk.WriteResult{Outcome: sdk.Partial}
				for i := n; i < len(names); i++ {
					result.Failures = append(result.Failures, sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassTransient, "busy", "later")})
				}
				return result, nil
			}
		case 5:
			return sdk.WriteResult{Outcome: sdk.Partial}, nil // a breach of the contract
		}
	}
	if s.props.Commit == sdk.CommitOnFlush {
		for i, name := range names {
			s.staged = append(s.staged, stagedEvent{b.FirstSeq + uint64(i), name})
		}
		return sdk.WriteResult{Outcome: sdk.Staged}, nil
	}
	s.stored = append(s.stored, names...)
	return sdk.WriteResult{Outcome: sdk.Committed}, nil
}

func (s *historyStore) Flush(_ context.Context, _ sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.inFlight > 0 {
		s.problem("a flush while %d calls are at hand", s.inFlight)
	}
	through := upTo
	if s.r != nil {
		switch s.r.IntN(10) {
		case 0:
			return sdk.FlushResult{}, errors.New("connection lost")
		case 1:
			s.lose()
			return sdk.FlushResult{}, sdk.Errorf(sdk.ClassTransient, codeDied, "the process ended")
		case 2: // a part
			if len(s.staged) > 0 {
				through = s.staged[s.r.IntN(len(s.staged))].seq
			}
		case 3: // it commits, and the answer is lost
			for _, e := range s.staged {
				if badKind(e.name) == "" {
					s.stored = append(s.stored, e.name)
				}
			}
			s.lose()
			return sdk.FlushResult{}, errors.New("connection lost")
		}
	}
	through = min(through, upTo)
	result := sdk.FlushResult{CommittedThrough: through}
	var rest []stagedEvent
	for _, e := range s.staged {
		switch {
		case e.seq > through:
			rest = append(rest, e)
		case badKind(e.name) != "":
			result.Failures = append(result.Failures, sdk.FlushFailure{Seq: e.seq, Err: sdk.Errorf(sdk.ClassPermanent, "constraint", "no")})
		default:
			s.stored = append(s.stored, e.name)
		}
	}
	s.staged = rest
	return result, nil
}
