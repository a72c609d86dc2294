package delivery

import (
	"errors"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// stagedBatches returns a staging area with a sink that has staged these batches.
func stagedBatches(t *testing.T, s *scriptedSink, batches ...*batch) *staging {
	t.Helper()
	send := testSender(t, s)
	sched := &scheduler{}
	st := &staging{target: send.target, log: logOf(), sched: sched, sender: send.sender}
	for i, b := range batches {
		sched.add(testReader(false), &chunk{batches: []*batch{b}})
		sched.dispatch(10, sdk.OrderPerKey, func(*batch) {})
		b.markStaged(s.current, b.lastSeq())
		sched.finish(b)
		if !st.add(b) {
			t.Fatalf("batch %d is lost", i)
		}
	}
	return st
}

func TestStagingIsDueBySizeAndAge(t *testing.T) {
	t.Parallel()
	s := &scriptedSink{props: sdk.SinkProperties{MaxStagedEvents: 3, MaxStagedAge: time.Hour}}
	st := stagedBatches(t, s)
	if got := st.dueReason(false); got != sdk.FlushUnspecified {
		t.Errorf("empty: %v", got)
	}
	st = stagedBatches(t, s, testBatch("a", "b"))
	if got := st.dueReason(false); got != sdk.FlushUnspecified {
		t.Errorf("two of three events: %v", got)
	}
	if wait := st.untilDue(); wait < 59*time.Minute {
		t.Errorf("due in %v", wait)
	}
	st.since = time.Now().Add(-time.Hour)
	if got := st.dueReason(false); got != sdk.FlushTimer {
		t.Errorf("after an hour: %v", got)
	}
	st = stagedBatches(t, s, testBatch("a", "b"), testBatch("c"))
	if got := st.dueReason(false); got != sdk.FlushSize {
		t.Errorf("three events: %v", got)
	}
}

// sessionlessSink does not report its sessions: what it stages cannot be known to be lost.
type sessionlessSink struct{ Sink }

func TestReasonsOfFlushes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		props    sdk.SinkProperties
		cautious bool
		silent   bool // the sink reports no sessions
		age      time.Duration
		want     sdk.FlushReason
	}{
		{name: "below all limits", want: sdk.FlushUnspecified},
		{name: "one event below", props: sdk.SinkProperties{MaxStagedEvents: 4}, want: sdk.FlushUnspecified},
		{name: "events", props: sdk.SinkProperties{MaxStagedEvents: 3}, want: sdk.FlushSize},
		{name: "bytes", props: sdk.SinkProperties{MaxStagedBytes: 1}, want: sdk.FlushSize},
		{name: "age", props: sdk.SinkProperties{MaxStagedAge: time.Minute}, age: time.Minute, want: sdk.FlushTimer},
		{name: "size before age", props: sdk.SinkProperties{MaxStagedAge: time.Minute, MaxStagedEvents: 1}, age: time.Minute, want: sdk.FlushSize},
		{name: "caution", cautious: true, want: sdk.FlushSize},
		{name: "no sessions", silent: true, want: sdk.FlushSize},
	} {
		sink := &scriptedSink{props: c.props}
		st := stagedBatches(t, sink, testBatch("a", "b"), testBatch("c"))
		st.since = st.since.Add(-c.age)
		if c.silent {
			st.sink = sessionlessSink{sink}
		}
		if got := st.dueReason(c.cautious); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := st.stats.Status("test"); got.StagedEvents != 3 || got.StagedBytes != st.bytes || st.bytes == 0 {
			t.Errorf("%s: %+v of %d bytes", c.name, got, st.bytes)
		}
		if st.reset(); st.dueReason(c.cautious) != sdk.FlushUnspecified || st.stats.Status("test").StagedEvents != 0 {
			t.Errorf("%s: due after a reset", c.name)
		}
	}
}

func TestStagingIsLostInAnotherSession(t *testing.T) {
	t.Parallel()
	s := &scriptedSink{current: 1}
	st := stagedBatches(t, s, testBatch("a"))
	if st.lost() {
		t.Error("lost in the same session")
	}
	s.current = 2
	if !st.lost() || st.flush(sdk.FlushTimer) {
		t.Error("a flush succeeds for events of a session that ended")
	}
	b := testBatch("b")
	b.markStaged(1, b.lastSeq())
	if st.add(b) {
		t.Error("a batch of a session that ended is added")
	}
}

func TestStagingSettlesWhatAFlushCommits(t *testing.T) {
	t.Parallel()
	s := &scriptedSink{}
	through := uint64(2)
	s.flush = func(uint64) (sdk.FlushResult, error) { return sdk.FlushResult{CommittedThrough: through}, nil }
	st := stagedBatches(t, s, testBatch("a", "b"), testBatch("c"))
	if st.flush(sdk.FlushTimer) {
		t.Error("nothing remains, though the third event was not committed")
	}
	if !st.sched.pending[0].state.settled || st.sched.pending[1].state.settled || st.events != 0 || st.stats.Delivered() != 2 {
		t.Errorf("events %d, delivered %d", st.events, st.stats.Delivered())
	}
	through = 3
	st = stagedBatches(t, s, testBatch("a", "b"), testBatch("c"))
	if !st.flush(sdk.FlushTimer) || st.stats.Delivered() != 3 {
		t.Errorf("delivered %d of 3", st.stats.Delivered())
	}
}

func TestStagingCountsEmptyFlushes(t *testing.T) {
	t.Parallel()
	s := &scriptedSink{flush: func(uint64) (sdk.FlushResult, error) { return sdk.FlushResult{}, errors.New("disk full") }}
	st := stagedBatches(t, s, testBatch("a"))
	for range 3 {
		if st.flush(sdk.FlushSize) {
			t.Error("a failed flush succeeds")
		}
	}
	if st.emptyFlushes != 3 || st.stats.Status("").State != "not_flushing" {
		t.Errorf("%d empty flushes, state %s", st.emptyFlushes, st.stats.Status("").State)
	}
}
