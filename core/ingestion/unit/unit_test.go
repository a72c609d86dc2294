package unit_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

const partitions = 12

// shares gives partitions to nodes as the test says.
type shares struct {
	start func(number int, token int64) (stop func(ctx context.Context))
}

func (s *shares) Withhold(string, bool) {}

func (s *shares) Follow(_ string, _ int, start func(int, int64) func(context.Context)) {
	s.start = start
}

// pausing is a stage that sometimes stops for a while, as a busy machine does.
type pausing struct{ rand *ingestiontest.Random }

func (pausing) Name() string { return "pausing" }
func (p pausing) Process(ctx context.Context, _ []*sdk.Event) error {
	if p.rand.IntN(8) == 0 {
		select {
		case <-time.After(time.Duration(p.rand.IntN(30)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// follower stores the uuids of events in a table.
type follower struct{ db *db.DB }

func newFollower(t *testing.T, d *db.DB) *follower {
	t.Helper()
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "CREATE TABLE followed (uuid TEXT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return &follower{d}
}

func (f *follower) Name() string       { return "test" }
func (f *follower) Accepts(int64) bool { return true }
func (f *follower) Prepare(_ context.Context, batch []*sdk.Event) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		for _, ev := range batch {
			if _, err := f.db.Write(ctx).ExecContext(ctx, "INSERT INTO followed (uuid) VALUES (?)", ev.UUID); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// count returns how many events the follower has stored, and how many different ones.
func (f *follower) count(t *testing.T) (all, different int) {
	t.Helper()
	row := f.db.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT uuid) FROM followed")
	if err := row.Scan(&all, &different); err != nil {
		t.Fatal(err)
	}
	return all, different
}

// newNode returns the units of a node on a database, with memory of its own.
func newNode(t *testing.T, d *db.DB, log eventlog.Log, f pipeline.Follower) (*unit.Set, *shares) {
	t.Helper()
	random, _ := ingestiontest.NewRandom(t)
	p := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	defs := definitions.New(definitions.DefaultConfig(), d, definitions.Dependencies{Groups: p}, nil)
	stages := []pipeline.Stage{pausing{random}, pipeline.PersonStage(p), pipeline.EventStage(e, nil), pipeline.DefinitionStage(defs)}
	cfg := pipeline.DefaultConfig()
	cfg.RetryMin, cfg.RetryMax, cfg.MaxEvents, cfg.Linger = time.Millisecond, 10*time.Millisecond, 50, 0
	w, err := pipeline.NewWorker(cfg, event.DefaultLimits(), log.Partition(0, 0), d, stages, e, pipeline.NewMetrics(nil), deadletter.NewMetrics(nil), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	s := &shares{}
	set := unit.NewSet(unit.Dependencies{Log: log, Shares: s, Worker: w, Followers: []pipeline.Follower{f}, Logger: zap.NewNop()})
	if err := set.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := set.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return set, s
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// story is the items of requests of 40 people with two ids each. Each person is
// identified once; people are merged across partitions. The persons at the end do not
// depend on the order of events of different ids.
func story(r *rand.Rand, requests int) (out []string) {
	next := map[string]int{}
	identified := map[int]bool{}
	for range requests {
		var items []string
		for range 1 + r.IntN(6) {
			person := r.IntN(40)
			id := fmt.Sprintf("user%d", person)
			switch n := r.IntN(12); {
			case n == 0 && !identified[person]:
				identified[person] = true
				items = append(items, fmt.Sprintf(`{"event":"$identify","distinct_id":%q,"properties":{"$anon_distinct_id":"anon%d"}}`, id, person))
			case n == 1 && r.IntN(3) == 0:
				items = append(items, fmt.Sprintf(`{"event":"$merge_dangerously","distinct_id":%q,"properties":{"alias":"user%d"}}`, id, person/4*4+r.IntN(4)))
			default:
				if n%2 == 0 {
					id = fmt.Sprintf("anon%d", person)
				}
				next[id]++
				items = append(items, fmt.Sprintf(`{"event":"e%d","distinct_id":%q,"properties":{"$set":{"last_%s":%d}}}`, next[id], id, id, next[id]))
			}
		}
		out = append(out, "["+strings.Join(items, ",")+"]")
	}
	return out
}

// appendStory appends request i of a story to a log, in parts.
func appendStory(t *testing.T, log eventlog.Log, i int, items string) {
	t.Helper()
	rec := ingestiontest.Record(items)
	rec.RequestID = [16]byte{byte(i), byte(i >> 8), 9}
	rec.ReceivedAt = rec.ReceivedAt.Add(time.Duration(i) * time.Millisecond)
	split := event.NewSplitter(func(project int64, id string) int { return eventlog.PartitionOf(project, id, log.Partitions()) })
	parts, _ := split.Split(&rec, nil)
	var out []eventlog.Part
	for _, p := range parts {
		out = append(out, eventlog.Part(p))
	}
	if err := log.Append(t.Context(), out); err != nil {
		t.Fatal(err)
	}
}

// describe returns the person of each distinct id: its ids and properties.
func describe(t *testing.T, d *db.DB) map[string]string {
	t.Helper()
	s := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	out := map[string]string{}
	for i := range 40 {
		for _, id := range []string{fmt.Sprintf("user%d", i), fmt.Sprintf("anon%d", i)} {
			p, found, err := s.ByDistinctID(t.Context(), 1, id)
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				continue
			}
			ids := slices.Clone(p.DistinctIDs)
			slices.Sort(ids)
			members := strings.Split(strings.Trim(string(p.Properties), "{}"), ",")
			members = slices.DeleteFunc(members, func(m string) bool { return strings.HasPrefix(m, `"$creator_event_uuid"`) }) // of the event that was first
			slices.Sort(members)
			out[id] = strings.Join(ids, " ") + " " + strings.Join(members, " ")
		}
	}
	return out
}

// Events that are accepted before any node owns their partition reach the followers: a
// server listens as soon as its units have started.
func TestFollowersKnowEarlyEvents(t *testing.T) {
	t.Parallel()
	d, log := dbtest.Postgres(t), ingestiontest.NewMemoryLog(4)
	f := newFollower(t, d)
	_, s := newNode(t, d, log, f)
	const requests = 8
	for i := range requests {
		appendStory(t, log, i, fmt.Sprintf(`[{"event":"e","distinct_id":"early-%d"}]`, i))
	}
	for p := range 4 {
		stop := s.start(p, 1)
		t.Cleanup(func() { stop(context.Background()) })
	}
	eventually(t, "the follower has all events", func() bool {
		_, different := f.count(t)
		return different == requests
	})
}

// Two nodes process a log in partitions that move between them, with and without the
// old owner noticing: every event is stored once, in its order, and the persons are
// those of one worker.
func TestPartitionsMoveBetweenNodes(t *testing.T) {
	t.Parallel()
	_, seed := ingestiontest.NewRandom(t)
	r := rand.New(rand.NewPCG(seed, 7))
	requests := story(r, 400)

	d, log := dbtest.Postgres(t), ingestiontest.NewMemoryLog(partitions)
	f := newFollower(t, d)
	var nodes [2]*shares
	var sets [2]*unit.Set
	for i := range nodes {
		sets[i], nodes[i] = newNode(t, d, log, f)
	}
	owner, token := [partitions]int{}, [partitions]int64{}
	stop := [partitions]func(context.Context){}
	give := func(p, node int) {
		token[p]++
		owner[p], stop[p] = node, nodes[node].start(p, token[p])
	}
	for p := range partitions {
		give(p, p%2)
	}
	for p := range partitions { // a follower begins at the end of the log
		eventually(t, "the followers are registered", func() bool {
			s, err := log.Partition(p, 0).Stats(t.Context())
			return err == nil && len(s.Readers) == 3
		})
	}
	tail := newTail(t, d)
	ended, end := context.WithCancel(t.Context())
	end()
	var late []func()
	for i, items := range requests {
		appendStory(t, log, i, items)
		if i%8 != 0 {
			continue
		}
		tail.read()
		p := r.IntN(partitions)
		old := stop[p]
		switch r.IntN(3) {
		case 0: // drained
			old(t.Context())
			give(p, 1-owner[p])
		case 1: // lost: the new owner begins first
			give(p, 1-owner[p])
			old(ended)
		case 2: // paused: the old owner goes on, and stops much later
			give(p, 1-owner[p])
			late = append(late, func() { old(ended) })
		}
	}
	want := countItems(requests)
	eventually(t, "all events", func() bool {
		tail.read()
		_, followed := f.count(t)
		return countStored(t, d) == want && followed == want
	})
	for _, fn := range late {
		fn()
	}
	checkStored(t, d, want)
	tail.check(want)
	if all, followed := f.count(t); all != followed {
		t.Errorf("the follower has stored %d events for %d", all, followed)
	}
	if got := sets[0].Progress(); got.State == pipeline.Waiting {
		t.Errorf("progress %+v", got)
	}
	compareWithOneWorker(t, requests, describe(t, d))
}

// compareWithOneWorker compares persons with those that one worker makes of the same
// requests in one partition.
func compareWithOneWorker(t *testing.T, requests []string, got map[string]string) {
	t.Helper()
	d, log := dbtest.SQLite(t), ingestiontest.NewMemoryLog(1)
	f := newFollower(t, d)
	_, s := newNode(t, d, log, f)
	s.start(0, 1)
	for i, items := range requests {
		appendStory(t, log, i, items)
	}
	eventually(t, "all events of one worker", func() bool { return countStored(t, d) == countItems(requests) })
	want := describe(t, d)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			t.Errorf("the person of %s is\n%s\nwant\n%s", id, got[id], want[id])
		}
	}
}

func countItems(requests []string) (n int) {
	for _, items := range requests {
		n += strings.Count(items, `"event"`)
	}
	return n
}

func countStored(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// checkStored checks that the numbers of events of one id ascend by one in the order
// of their rows, and that there are no dead letters.
func checkStored(t *testing.T, d *db.DB, want int) {
	t.Helper()
	if n := countStored(t, d); n != want {
		t.Errorf("%d events are stored of %d", n, want)
	}
	var rows []struct {
		Event      string
		DistinctID string
	}
	if err := d.Read(t.Context()).NewRaw("SELECT event, distinct_id FROM events ORDER BY id").Scan(t.Context(), &rows); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, row := range rows {
		if !strings.HasPrefix(row.Event, "e") {
			continue
		}
		next[row.DistinctID]++
		if row.Event != fmt.Sprint("e", next[row.DistinctID]) {
			t.Fatalf("event %s of %s, want e%d", row.Event, row.DistinctID, next[row.DistinctID])
		}
	}
	var letters int
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM dead_letters").Scan(&letters); err != nil || letters != 0 {
		t.Errorf("%d dead letters, %v", letters, err)
	}
}

// tail reads the event store as histories do: up to a row, and later from there on.
type tail struct {
	t    *testing.T
	db   *db.DB
	last int64
	n    int
}

func newTail(t *testing.T, d *db.DB) *tail { return &tail{t: t, db: d} }

func (l *tail) read() {
	l.t.Helper()
	var ids []int64
	if err := l.db.Read(l.t.Context()).NewRaw("SELECT id FROM events WHERE id > ? ORDER BY id", l.last).Scan(l.t.Context(), &ids); err != nil {
		l.t.Fatal(err)
	}
	if len(ids) > 0 {
		l.last = ids[len(ids)-1]
	}
	l.n += len(ids)
}

func (l *tail) check(want int) {
	l.t.Helper()
	if l.read(); l.n != want {
		l.t.Errorf("a reader from row to row has met %d events of %d", l.n, want)
	}
}
