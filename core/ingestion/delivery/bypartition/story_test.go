package bypartition_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/delivery/bypartition"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/sdk"
)

const partitions = 4

// warehouse is what a sink writes to. All nodes and partitions write to the same one.
type warehouse struct {
	mu     sync.Mutex
	next   map[string]int // by distinct id: the event that must come next
	sent   map[string]int // how often each event came, by distinct id and name
	wrong  []string
	writes map[string]int // by session
	reject map[string]bool
	before func(session string) // called before each write

	process *process // nil: one that does not die
}

func newWarehouse() *warehouse {
	return &warehouse{next: map[string]int{}, sent: map[string]int{}, writes: map[string]int{}, reject: map[string]bool{}}
}

// write stores events. Those of one distinct id are e1, e2, …: one may come again, but
// none before its predecessor.
func (w *warehouse) write(session string, b *sdk.Batch) (sdk.WriteResult, error) {
	w.mu.Lock()
	before := w.before
	w.mu.Unlock()
	if before != nil {
		before(session)
	}
	events, err := b.Events()
	if err != nil {
		return sdk.WriteResult{}, err
	}
	var ids []string
	for i := range events {
		ids = append(ids, events[i].DistinctID)
	}
	if w.process != nil && w.process.call(session, ids) {
		return sdk.WriteResult{}, sdk.Errorf(sdk.ClassTransient, "plugin_unavailable", "the process has ended")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[session]++
	var failures []sdk.Failure
	for i := range events {
		id, name := events[i].DistinctID, events[i].Name
		var n int
		if _, err := fmt.Sscanf(name, "e%d", &n); err != nil {
			return sdk.WriteResult{}, err
		}
		if n > w.next[id]+1 {
			w.wrong = append(w.wrong, fmt.Sprintf("%s of %s after e%d in %s", name, id, w.next[id], session))
		}
		w.next[id] = max(w.next[id], n)
		if w.reject[id] {
			failures = append(failures, sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassPermanent, "no", "no")})
			continue
		}
		w.sent[id+" "+name]++
	}
	if len(failures) > 0 {
		return b.Partial(failures...), nil
	}
	return b.Committed(), nil
}

func (w *warehouse) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

func (w *warehouse) writesOf(session string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes[session]
}

func (w *warehouse) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.wrong {
		t.Error(s)
	}
}

// fakeSink is a session of a node.
type fakeSink struct {
	session string
	to      *warehouse
}

func (s *fakeSink) Name() string { return "warehouse" }
func (s *fakeSink) Properties() sdk.SinkProperties {
	return sdk.SinkProperties{MaxInFlight: 2, Ordering: sdk.OrderPerKey, MaxEvents: 20}
}
func (s *fakeSink) Ready(ctx context.Context) error { return ctx.Err() }
func (s *fakeSink) Write(_ context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	return s.to.write(s.session, b)
}
func (s *fakeSink) Flush(_ context.Context, _ sdk.FlushReason, upTo uint64) (sdk.FlushResult, error) {
	return sdk.FlushResult{CommittedThrough: upTo}, nil
}

// nodeSinks are the sinks of a node.
type nodeSinks struct {
	node string
	to   *warehouse

	mu   sync.Mutex
	open map[int]int // sessions by partition
}

func (s *nodeSinks) Sinks() []delivery.Sink { return []delivery.Sink{&fakeSink{s.node, s.to}} }

func (s *nodeSinks) Changed() <-chan struct{} { return nil }

func (s *nodeSinks) Partition(number int) (delivery.Sinks, func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[number]++
	return oneSink{&fakeSink{fmt.Sprintf("%s@%d", s.node, number), s.to}}, func(context.Context) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[number]--
	}
}

type oneSink struct{ sink *fakeSink }

func (s oneSink) Sinks() []delivery.Sink   { return []delivery.Sink{s.sink} }
func (s oneSink) Changed() <-chan struct{} { return nil }

// shares gives partitions to a node.
type shares struct {
	withheld atomic.Bool
	start    func(number int, token int64) func(ctx context.Context)
}

func (s *shares) Withhold(_ string, on bool) { s.withheld.Store(on) }

func (s *shares) Follow(_ string, _ int, start func(int, int64) func(context.Context)) {
	s.start = start
}

// node is a process with units and deliveries.
type node struct {
	shares
	set   *bypartition.Set
	units *unit.Set
	sinks *nodeSinks

	mu      sync.Mutex
	without bool // it knows that it has no lease
	has     bool // another node has all sinks
	asked   int  // how often this was asked
}

func (n *node) Announce(string, []string) {}

func (n *node) Announced(string, string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return n.has
}

func (n *node) holds(int, int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.without
}

func newNode(t *testing.T, name string, d *db.DB, log eventlog.Log, to *warehouse, change ...func(*delivery.Config)) *node {
	t.Helper()
	return newNodeErasing(t, name, d, log, to, nil, change...)
}

// newNodeErasing returns a node that knows of erasures.
func newNodeErasing(t *testing.T, name string, d *db.DB, log eventlog.Log, to *warehouse, erasures *erasure.Service, change ...func(*delivery.Config)) *node {
	t.Helper()
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	wc := pipeline.DefaultConfig()
	wc.RetryMin, wc.RetryMax, wc.Linger = time.Millisecond, 10*time.Millisecond, 0
	dead := deadletter.NewMetrics(nil)
	w, err := pipeline.NewWorker(wc, event.DefaultLimits(), log.Partition(0, 0), d, []pipeline.Stage{pipeline.EventStage(e, nil)}, e, pipeline.NewMetrics(nil), dead, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{sinks: &nodeSinks{node: name, to: to, open: map[int]int{}}}
	cfg := delivery.DefaultConfig()
	cfg.Start, cfg.Linger, cfg.RetryMin, cfg.RetryMax = "begin", time.Millisecond, time.Millisecond, 5*time.Millisecond
	for _, f := range change {
		f(&cfg)
	}
	template, err := delivery.NewService(cfg, event.DefaultLimits(), log.Partition(0, 0), d, n.sinks, delivery.NewMetrics(nil), dead, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	n.set = bypartition.NewSet(bypartition.Dependencies{Log: log, Service: template, Sinks: n.sinks, Holds: n.holds, Nodes: n, Replays: "replays", Logger: zap.NewNop()})
	deps := unit.Dependencies{Log: log, Shares: &n.shares, Worker: w, Parts: []unit.Part{n.set}, Logger: zap.NewNop()}
	if erasures != nil {
		w.RespectErasures(erasures)
		deps.Erased = func(partition int) pipeline.Erased { return erasures.Partition(partition) }
	}
	n.units = unit.NewSet(deps)
	for _, start := range []func(context.Context) error{n.set.Open, n.units.Start} {
		if err := start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, stop := range []func(context.Context) error{n.units.Stop, n.set.Close} {
			if err := stop(ctx); err != nil {
				t.Error(err)
			}
		}
		for p, open := range n.sinks.open {
			if open != 0 {
				t.Errorf("%d open sessions of partition %d", open, p)
			}
		}
	})
	return n
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// source appends requests with the next events of some distinct ids.
type source struct {
	t    *testing.T
	log  eventlog.Log
	n    int
	next map[string]int
}

func newSource(t *testing.T, log eventlog.Log) *source {
	return &source{t: t, log: log, next: map[string]int{}}
}

func (s *source) add(ids ...string) {
	s.t.Helper()
	s.n++
	var items []string
	for _, id := range ids {
		s.next[id]++
		items = append(items, fmt.Sprintf(`{"event":"e%d","distinct_id":%q}`, s.next[id], id))
	}
	rec := ingestiontest.Record("[" + strings.Join(items, ",") + "]")
	rec.RequestID = [16]byte{byte(s.n), byte(s.n >> 8), 7}
	split := event.NewSplitter(func(project int64, id string) int { return eventlog.PartitionOf(project, id, s.log.Partitions()) })
	parts, _ := split.Split(&rec, nil)
	var out []eventlog.Part
	for _, p := range parts {
		out = append(out, eventlog.Part(p))
	}
	if err := s.log.Append(s.t.Context(), out); err != nil {
		s.t.Fatal(err)
	}
}

func (s *source) total() (n int) {
	for _, k := range s.next {
		n += k
	}
	return n
}

// idsOf returns ids of a partition.
func idsOf(partition, n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		if id := fmt.Sprint("person", i); eventlog.PartitionOf(1, id, partitions) == partition {
			ids = append(ids, id)
		}
	}
	return ids
}

func sinkStatus(t *testing.T, n *node) delivery.SinkStatus {
	t.Helper()
	all, err := n.set.Status(t.Context())
	if err != nil || len(all) != 1 || all[0].Sink != "warehouse" || len(all[0].Partitions) != partitions {
		t.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

// Two nodes deliver a log in partitions that move between them while calls are in
// flight, with and without the old owner noticing: every event is delivered, and none
// before its predecessor.
func TestPartitionsMoveWhileTheyAreDelivered(t *testing.T) {
	t.Parallel()
	random, seed := ingestiontest.NewRandom(t)
	r := rand.New(rand.NewPCG(seed, 3))
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	to.before = func(string) {
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // as a busy warehouse
		}
	}
	nodes := [2]*node{newNode(t, "a", d, log, to), newNode(t, "b", d, log, to)}
	owner, token := [partitions]int{}, [partitions]int64{}
	stop := [partitions]func(context.Context){}
	give := func(p, n int) {
		token[p]++
		owner[p], stop[p] = n, nodes[n].start(p, token[p])
	}
	for p := range partitions {
		give(p, p%2)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	src := newSource(t, log)
	for i := range 300 {
		ids := make([]string, 1+r.IntN(6))
		for k := range ids {
			ids[k] = fmt.Sprint("person", r.IntN(30))
		}
		src.add(ids...)
		if i%6 != 0 {
			continue
		}
		p := r.IntN(partitions)
		old := stop[p]
		if r.IntN(2) == 0 { // drained: nothing of the old owner is in flight
			old(t.Context())
			give(p, 1-owner[p])
		} else { // lost: the new owner begins first
			give(p, 1-owner[p])
			old(ended)
		}
	}
	eventually(t, "all events are delivered", func() bool { return to.count() == src.total() })
	to.check(t)
	eventually(t, "nothing is behind", func() bool { return sinkStatus(t, nodes[0]).LagRecords == 0 })
	if a, b := to.writesOf("a@0"), to.writesOf("b@0"); a == 0 && b == 0 {
		t.Error("partition 0 has no session of its own")
	}
}

// A node that is stopped during a call, and continues after another one took the
// partition over, commits nothing. It sends nothing more when its commit has failed,
// although it believes that it holds the lease.
func TestStalledNodeCommitsNothing(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	a, b := newNode(t, "a", d, log, to), newNode(t, "b", d, log, to)
	stalled, resume := make(chan struct{}), make(chan struct{})
	var once sync.Once
	to.before = func(session string) {
		if session == "a@1" {
			once.Do(func() {
				close(stalled)
				<-resume
			})
		}
	}
	id := idsOf(1, 1)[0]
	src := newSource(t, log)
	a.start(1, 1)
	src.add(id)
	<-stalled
	b.start(1, 2)
	eventually(t, "the new owner sends the event again", func() bool { return to.count() == 1 })
	src.add(id)
	eventually(t, "the new owner goes on", func() bool { return to.count() == 2 })
	eventually(t, "the new owner has committed", func() bool { return sinkStatus(t, b).LagRecords == 0 })
	close(resume)
	eventually(t, "the call of the old owner arrives", func() bool { return to.writesOf("a@1") > 0 })
	eventually(t, "the old owner has noticed", func() bool { return a.units.Units()[0].Lost() })
	eventually(t, "the new owner delivers alone", func() bool { // the old one notices at its next commit
		before, count := to.writesOf("a@1"), to.count()
		src.add(id)
		eventually(t, "the new owner goes on", func() bool { return to.count() > count })
		eventually(t, "and commits", func() bool { return sinkStatus(t, b).LagRecords == 0 })
		return to.writesOf("a@1") == before
	})
	to.check(t)
}

// A node that knows that it has lost its lease sends nothing, although the cursor is
// still its own.
func TestNodeWithoutLeaseSendsNothing(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	a, b := newNode(t, "a", d, log, to), newNode(t, "b", d, log, to)
	id := idsOf(2, 1)[0]
	src := newSource(t, log)
	a.start(2, 1)
	src.add(id)
	eventually(t, "the first event", func() bool { return to.count() == 1 })
	a.mu.Lock()
	a.without = true
	a.mu.Unlock()
	src.add(id)
	eventually(t, "the node gives the partition up", func() bool { return a.units.Units()[0].Lost() })
	if n := to.count(); n != 1 {
		t.Errorf("%d events", n)
	}
	b.start(2, 2)
	eventually(t, "the next owner delivers", func() bool { return to.count() == 2 })
	to.check(t)
}

// Events that are accepted before any node owns their partition reach a new sink, which
// begins at the end of the log as it was when the node started.
func TestNewSinkGetsEarlyEvents(t *testing.T) {
	t.Parallel()
	d, log, to := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions), newWarehouse()
	a := newNode(t, "a", d, log, to, func(c *delivery.Config) { c.Start = "end" })
	src := newSource(t, log)
	for p := range partitions {
		src.add(idsOf(p, 1)...)
	}
	for p := range partitions {
		a.start(p, 1)
	}
	eventually(t, "all events", func() bool { return to.count() == src.total() })
	to.check(t)
}
