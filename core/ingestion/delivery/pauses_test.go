package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/sdk"
)

// The pauses after flushes that commit nothing grow from one to the next, up to a limit.
func TestPausesAfterEmptyFlushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		target := &target{sink: &scriptedSink{}, limits: event.DefaultLimits(), metrics: NewMetrics(nil), deadMetrics: deadletter.NewMetrics(nil), logger: zap.NewNop()}
		target.cfg.RetryMin, target.cfg.RetryMax, target.cfg.ConfigRetry = time.Second, 20*time.Second, time.Minute
		s := &staging{target: target, sched: &scheduler{}, sender: &sender{target: target, drainCtx: t.Context(), killCtx: t.Context()}}
		pause := func() time.Duration {
			began := time.Now()
			s.noteEmptyFlush(sdk.Errorf(sdk.ClassTransient, "busy", "no"))
			return time.Since(began)
		}
		const rounds = 40
		var shortest, longest [18]time.Duration
		for range rounds {
			s.emptyFlushes = 0
			for i := range longest {
				p := pause()
				longest[i] = max(longest[i], p)
				if shortest[i] == 0 || p < shortest[i] {
					shortest[i] = p
				}
			}
		}
		for i := range longest {
			most := min(time.Second<<i, 20*time.Second)
			if shortest[i] <= 0 || longest[i] > most || longest[i] < most/4 {
				t.Errorf("flush %d: pauses from %s to %s, want up to %s", i+1, shortest[i], longest[i], most)
			}
		}
		if s.stats.Status("test").State != "not_flushing" {
			t.Errorf("state %s", s.stats.Status("test").State)
		}
	})
}

// A sink that is throttled without saying for how long is left alone as after other failures.
func TestPausesOfThrottledSinks(t *testing.T) {
	t.Parallel()
	target := &target{sink: &scriptedSink{}, metrics: NewMetrics(nil), logger: zap.NewNop()}
	target.cfg.RetryMin, target.cfg.RetryMax, target.cfg.ConfigRetry = 20*time.Second, 40*time.Second, time.Minute
	s := &sender{target: target, drainCtx: t.Context(), killCtx: t.Context()}
	for _, after := range []time.Duration{0, -time.Second} {
		var longest time.Duration
		for range 50 {
			longest = max(longest, s.noteFailure(&sdk.Error{Class: sdk.ClassThrottled, RetryAfter: after}, s.retryPauses()))
		}
		if longest < time.Second || longest > 20*time.Second {
			t.Errorf("retry after %s: the longest pause is %s, want about 20s", after, longest)
		}
	}
}

// TestKindsOfFailures checks which failures are the answer of a sink, and which end the retries.
func TestKindsOfFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure           sdk.Error
		answer, permanent bool
	}{
		{sdk.Error{Class: sdk.ClassTransient, Code: "busy"}, true, false},
		{sdk.Error{Class: sdk.ClassThrottled, Code: "slow"}, true, false},
		{sdk.Error{Class: sdk.ClassInternal, Code: "panic"}, true, false},
		{sdk.Error{Class: sdk.ClassPermanent, Code: "constraint"}, true, true},
		{sdk.Error{Class: sdk.ClassUnsupported, Code: "no"}, true, true},
		{sdk.Error{Class: sdk.ClassConfig, Code: "password"}, false, false},
		{sdk.Error{Class: sdk.ClassTransient, Code: codeDied}, false, false},
		{sdk.Error{Class: sdk.ClassNotConnected, Code: codeDown}, false, false},
	} {
		if isAnswer(&c.failure) != c.answer || isPermanent(&c.failure) != c.permanent {
			t.Errorf("%+v: an answer %v, permanent %v", c.failure, isAnswer(&c.failure), isPermanent(&c.failure))
		}
	}
	if got := classify(&sdk.Error{Code: "x"}); got.Class != sdk.ClassTransient || got.Code != "x" {
		t.Errorf("an error without a class is %+v", got)
	}
	if got := classify(&sdk.Error{Class: sdk.ClassConfig}); got.Class != sdk.ClassConfig {
		t.Errorf("an error with a class is %+v", got)
	}
}

// A batch whose records were staged in two sessions has lost some of them.
func TestStagedInTwoSessions(t *testing.T) {
	t.Parallel()
	b := testBatch("a", "b", "c")
	for _, step := range []struct {
		session, upTo, stagedTo uint64
		split                   bool
	}{{4, 1, 1, false}, {4, 2, 2, false}, {5, 3, 3, true}, {5, 1, 3, true}} {
		b.markStaged(step.session, step.upTo)
		if s := b.state; !s.staged || s.session != step.session || s.stagedTo != step.stagedTo || s.splitSession != step.split {
			t.Errorf("%+v: %+v", step, s)
		}
	}
	sink := &scriptedSink{current: 5}
	st := &staging{target: testTarget(sink), sched: &scheduler{}}
	if st.add(b) {
		t.Error("a batch of two sessions was taken for staged")
	}
}

// A flush whose failures have no reason, or may pass, has made nothing safe.
func TestFlushWithFailuresThatMayPass(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]*sdk.Error{"no reason": nil, "transient": sdk.Errorf(sdk.ClassTransient, "busy", "no")} {
		sink := &scriptedSink{current: 1, flush: func(upTo uint64) (sdk.FlushResult, error) {
			permanent := sdk.Errorf(sdk.ClassPermanent, "constraint", "no")
			return sdk.FlushResult{CommittedThrough: upTo, Failures: []sdk.FlushFailure{{Seq: 1, Err: permanent}, {Seq: 2, Err: failure}}}, nil
		}}
		s := stagedBatches(t, sink, testBatch("a", "b"))
		if s.flush(sdk.FlushSize) || s.stats.Delivered() > 0 || s.stats.Status("test").DeadLetters > 0 {
			t.Errorf("%s: status %+v", name, s.stats.Status("test"))
		}
	}
}
