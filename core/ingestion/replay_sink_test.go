package ingestion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/replay"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/sdk"
)

// deadLetterAll delivers events to a sink that rejects them, and returns when all are
// dead letters and the sink accepts events.
func deadLetterAll(t *testing.T, d *db.DB, s *fakeSink, names ...string) (*delivery.Service, *pipeline.Worker) {
	t.Helper()
	j := openJournal(t, t.TempDir())
	later := s.write
	s.write = rejects(sdk.ClassPermanent)
	accept(t, j, names...)
	del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
	eventually(t, "the dead letters", func() bool { return letters(t, d) == strings.Join(names, " ") })
	s.mu.Lock()
	s.write, s.batches = later, nil
	s.mu.Unlock()
	return del, startWorker(t, workerConfig(), j, d, nil)
}

func replayAll(t *testing.T, l *deadletter.Service, wait time.Duration) deadletter.ReplayResult {
	t.Helper()
	got, err := l.Replay(t.Context(), 1, deadletter.Filter{}, false, wait)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestReplayRetriesTransientFailures(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &fakeSink{name: "one"}
		s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			if eventNames(b)[0] == "a" && b.Attempt < 3 || eventNames(b)[0] == "b" {
				return sdk.WriteResult{}, errors.New("the wire was cut")
			}
			return b.Committed(), nil
		}
		del, w := deadLetterAll(t, d, s, "a", "b", "c")
		l := startReplayer(t, d, w, del)
		got := replayAll(t, l, time.Minute)
		if got.Replayed != 2 || got.Failed != 1 || got.Waiting != 0 || s.has() != "a c" {
			t.Fatalf("%+v, the sink has %s", got, s.has())
		}
		sent := s.sent()
		if len(sent) != 9 || sent[0].ID != sent[2].ID || sent[2].Attempt != 3 || sent[7].Attempt != 5 || sent[3].ID == sent[0].ID {
			t.Errorf("%d batches: %+v", len(sent), sent)
		}
		list, _, err := l.List(t.Context(), 1, deadletter.Filter{}, 10, 0)
		if err != nil || len(list) != 1 || list[0].Attempts != 6 || !strings.Contains(list[0].Message, "the wire was cut") || list[0].ReplayWaiting {
			t.Errorf("left: %+v, %v", list, err)
		}
	})
}

// A replay that one process requests is carried out by another one.
func TestReplayRequestedByAnotherProcess(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &fakeSink{name: "one"}
		del, w := deadLetterAll(t, d, s, "a", "b")
		other := deadletter.NewService(d, event.DefaultLimits(), nil)
		if got := replayAll(t, other, 0); got.Waiting != 2 || got.Replayed+got.Failed != 0 || s.has() != "" {
			t.Fatalf("without a server: %+v", got)
		}
		if got := replayAll(t, other, 0); got.Waiting != 2 {
			t.Errorf("asked twice: %+v", got)
		}
		startReplayer(t, d, w, del)
		eventually(t, "the replay", func() bool { return s.has() == "a b" && letters(t, d) == "" })
		if got := replayAll(t, other, time.Second); got.Matched != 0 {
			t.Errorf("again: %+v", got)
		}
	})
}

func TestReplayWaitsForASinkThatIsDown(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	var down atomic.Bool
	s := &fakeSink{name: "one"}
	s.ready = func(ctx context.Context) error {
		for down.Load() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	}
	del, w := deadLetterAll(t, d, s, "a")
	l := startReplayer(t, d, w, del)
	down.Store(true)
	if got := replayAll(t, l, 50*time.Millisecond); got.Waiting != 1 || s.has() != "" {
		t.Fatalf("%+v", got)
	}
	down.Store(false)
	eventually(t, "the replay", func() bool { return s.has() == "a" && letters(t, d) == "" })
}

// After a crash between the delivery and the deletion of a dead letter its event is
// sent again, under the same batch id.
func TestReplayAfterACrashSendsTheEventAgain(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	arrived, gone := make(chan struct{}, 2), make(chan struct{})
	s := &fakeSink{name: "one"}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		arrived <- struct{}{}
		<-gone
		return b.Committed(), nil
	}
	del, w := deadLetterAll(t, d, s, "a")
	r := replay.NewReplayer(replayConfig(), d, w, del, deadletter.NewMetrics(nil), zap.NewNop())
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	replayAll(t, deadletter.NewService(d, event.DefaultLimits(), r.Wake), 0)
	<-arrived
	_ = r.Stop(t.Context())
	close(gone)
	if letters(t, d) != "a" {
		t.Fatal("it was removed")
	}
	startReplayer(t, d, w, del)
	eventually(t, "the second delivery", func() bool { return s.has() == "a a" && letters(t, d) == "" })
	if sent := s.sent(); len(sent) != 2 || sent[0].ID != sent[1].ID || sent[0].Records[0].UUID != sent[1].Records[0].UUID {
		t.Errorf("sent %+v", sent)
	}
}

func TestReplayYieldsToLiveEvents(t *testing.T) {
	t.Parallel()
	for name, props := range map[string]sdk.SinkProperties{
		"one batch at a time": {MaxEvents: 1}, "several at once": {MaxEvents: 1, Ordering: sdk.OrderNone, MaxInFlight: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			var healthy atomic.Bool
			first, accepted := make(chan struct{}), make(chan struct{})
			s := &fakeSink{name: "one", props: props}
			s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
				switch {
				case !healthy.Load():
					return rejects(sdk.ClassPermanent)(b)
				case eventNames(b)[0] == "live":
				case len(s.kept) == 0:
					close(first)
				default: // the replay goes on with the live events, and slowly
					<-accepted
					time.Sleep(20 * time.Millisecond)
				}
				return b.Committed(), nil
			}
			accept(t, j, strings.Fields(strings.Repeat("old ", 200))...)
			del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
			eventually(t, "the dead letters", func() bool { return len(strings.Fields(letters(t, d))) == 200 })
			healthy.Store(true)
			l := startReplayer(t, d, startWorker(t, workerConfig(), j, d, nil), del)
			replayAll(t, l, 0)
			<-first
			accept(t, j, strings.Fields(strings.Repeat("live ", 50))...)
			close(accepted)
			eventually(t, "the live events", func() bool { return strings.Count(s.has(), "live") == 50 })
			has := s.has()
			if n := strings.Count(has[:strings.LastIndex(has, "live")], "old"); n == 0 || n > 100 {
				t.Errorf("%d of 200 were replayed before 50 live events", n)
			}
		})
	}
}

// A sink that stages must flush its events before a replay, and then the replay.
func TestReplayFlushesASinkThatStages(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s := &fakeSink{name: "one", props: sdk.SinkProperties{Commit: sdk.CommitOnFlush}}
	staged, safe := "", ""
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		staged += strings.Join(eventNames(b), " ")
		return sdk.WriteResult{Outcome: sdk.Staged}, nil
	}
	s.flush = func(upTo uint64) (sdk.FlushResult, error) {
		safe, staged = safe+staged+fmt.Sprint(" through ", upTo, ". "), ""
		return sdk.FlushResult{CommittedThrough: upTo}, nil
	}
	del, w := deadLetterAll(t, d, s, "a", "b")
	l := startReplayer(t, d, w, del)
	if got := replayAll(t, l, time.Minute); got.Replayed != 2 || letters(t, d) != "" {
		t.Errorf("%+v", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if safe != "a through 1. b through 2. " {
		t.Errorf("safe: %q", safe)
	}
}

// A dead letter that is edited during its replay stays.
func TestReplayKeepsAnEditedDeadLetter(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	s := &fakeSink{name: "one"}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		if eventNames(b)[0] == "a" {
			close(arrived)
			<-goOn
		}
		return b.Committed(), nil
	}
	del, w := deadLetterAll(t, d, s, "a")
	l := startReplayer(t, d, w, del)
	replayAll(t, l, 0)
	<-arrived
	list, _, err := l.List(t.Context(), 1, deadletter.Filter{}, 1, 0)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := l.Edit(t.Context(), 1, list[0].ID, []byte(`{"event":"repaired"}`)); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	eventually(t, "the end of the replay", func() bool {
		got, err := l.Get(t.Context(), 1, list[0].ID)
		return err == nil && !got.ReplayWaiting && strings.Contains(got.ReplayError, "edited") && got.Event == "repaired"
	})
	if got := replayAll(t, l, time.Minute); got.Replayed != 1 || s.has() != "a repaired" {
		t.Errorf("%+v, the sink has %s", got, s.has())
	}
}

// handOver is the jobs of two nodes: the job runs on the node that has the turn.
type handOver struct {
	mu   sync.Mutex
	jobs []func(ctx context.Context, token int64)
}

func (h *handOver) Run(_ string, job func(ctx context.Context, token int64)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = append(h.jobs, job)
}

// run runs the job on one node until the returned function takes it away.
func (h *handOver) run(node int) (takeAway func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.jobs[node](ctx, 1)
	}()
	return func() { cancel(); <-done }
}

// Two nodes may replay; the one that has the job does, and hands over between two
// events. Each event is sent once.
func TestOneOfTwoNodesReplays(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &fakeSink{name: "one"}
		first := make(chan struct{}, 1)
		s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			select {
			case first <- struct{}{}:
			default:
			}
			return b.Committed(), nil
		}
		del, w := deadLetterAll(t, d, s, "a", "b", "c", "d")
		other := startDeliver(t, deliverConfig(), openJournal(t, t.TempDir()), d, newSinks(s))
		jobs := &handOver{}
		for _, del := range []*delivery.Service{del, other} {
			r := replay.NewReplayer(replayConfig(), d, w, del, deadletter.NewMetrics(nil), zap.NewNop())
			r.RunOn(jobs)
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Stop(context.Background()) })
		}
		replayAll(t, deadletter.NewService(d, event.DefaultLimits(), nil), 0)
		takeAway := jobs.run(0)
		<-first
		takeAway()
		takeAway = jobs.run(1)
		defer takeAway()
		eventually(t, "no dead letters", func() bool { return letters(t, d) == "" })
		got := strings.Fields(s.has())
		if slices.Sort(got); len(slices.Compact(got)) != 4 || len(got) > 5 {
			t.Errorf("the sink has %q: only the event in the middle of the change may arrive twice", s.has())
		}
	})
}
