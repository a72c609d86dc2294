package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
	"github.com/guidonhq/guidon/sdk"
)

// namesOf returns the names of the events in a batch.
func namesOf(b *sdk.Batch) string {
	events, err := b.Events()
	if err != nil {
		panic(err)
	}
	var names []string
	for _, e := range events {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// deadLettersOf returns the names of the events that became dead letters.
func deadLettersOf(t *testing.T, s *testedSender) string {
	t.Helper()
	service := deadletter.NewService(s.db, s.limits, nil)
	list, _, err := service.List(t.Context(), 1, deadletter.Filter{}, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := len(list) - 1; i >= 0; i-- {
		names = append(names, list[i].Event)
	}
	return strings.Join(names, " ")
}

func reject(class sdk.Class, code string) (sdk.WriteResult, error) {
	return sdk.WriteResult{Outcome: sdk.Rejected, Err: &sdk.Error{Class: class, Code: code, Message: "no"}}, nil
}

func TestSenderRetriesTransientFailures(t *testing.T) {
	t.Parallel()
	var attempts []uint32
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		attempts = append(attempts, b.Attempt)
		if b.Attempt < 4 {
			return sdk.WriteResult{}, errors.New("connection reset")
		}
		return b.Committed(), nil
	}})
	if err := s.send(testBatch("a"), 0, 1, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	if len(attempts) != 4 || s.stats.Delivered() != 1 {
		t.Errorf("attempts %v, delivered %d", attempts, s.stats.Delivered())
	}
}

func TestSenderKeepsLimitsOfBatches(t *testing.T) {
	t.Parallel()
	for want, limits := range map[string]sdk.SinkProperties{
		"a b, c d, e":   {MaxEvents: 2},
		"a, b, c, d, e": {MaxBytes: 1},
		"a b c d e":     {},
	} {
		var calls, ids []string
		sink := &scriptedSink{props: limits, write: func(b *sdk.Batch) (sdk.WriteResult, error) {
			calls, ids = append(calls, namesOf(b)), append(ids, b.ID)
			return b.Committed(), nil
		}}
		s := testSender(t, sink)
		b := testBatch("a", "b", "c", "d", "e") // as before the sink was opened
		for range 2 {
			if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
				t.Fatal(err)
			}
		}
		half := len(calls) / 2
		if got := strings.Join(calls[:half], ", "); got != want || !slices.Equal(ids[:half], ids[half:]) {
			t.Errorf("calls %s with ids %q, want %s and the same ids again", got, ids, want)
		}
	}
}

func TestSenderBisectsRejectedBatches(t *testing.T) {
	t.Parallel()
	var calls []string
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		calls = append(calls, namesOf(b))
		if strings.Contains(namesOf(b), "bad") {
			return reject(sdk.ClassPermanent, "invalid")
		}
		return b.Committed(), nil
	}})
	b := testBatch("a", "b", "bad", "c")
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ", "); got != "a b bad c, a b, bad c, bad, c" {
		t.Errorf("calls %s", got)
	}
	if got := deadLettersOf(t, s); got != "bad" || s.stats.Delivered() != 3 {
		t.Errorf("dead letters %q, delivered %d", got, s.stats.Delivered())
	}
}

func TestSenderSendsTheRestOfAPartialAnswer(t *testing.T) {
	t.Parallel()
	var calls []string
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		calls = append(calls, namesOf(b))
		if len(calls) > 1 {
			return b.Committed(), nil
		}
		later := sdk.Errorf(sdk.ClassTransient, "later", "later")
		return b.Partial(
			sdk.Failure{Index: 4, Err: later}, sdk.Failure{Index: 0, Err: sdk.Errorf(sdk.ClassPermanent, "no", "no")},
			sdk.Failure{Index: 1, Err: later}, sdk.Failure{Index: 2, Err: later}), nil
	}})
	b := testBatch("bad", "b", "c", "d", "e")
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ", "); got != "bad b c d e, b c, e" {
		t.Errorf("calls %s, want consecutive records together", got)
	}
	if got := deadLettersOf(t, s); got != "bad" || s.stats.Delivered() != 4 {
		t.Errorf("dead letters %q, delivered %d", got, s.stats.Delivered())
	}
}

func TestSenderIsolatesTheEventThatCrashesThePlugin(t *testing.T) {
	t.Parallel()
	crashes := 0
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if strings.Contains(namesOf(b), "crash") {
			crashes++
			return reject(sdk.ClassTransient, codeDied)
		}
		return b.Committed(), nil
	}})
	b := testBatch("a", "b", "crash", "c")
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	if got := deadLettersOf(t, s); got != "crash" || s.stats.Delivered() != 3 || crashes > 5 {
		t.Errorf("dead letters %q, delivered %d, %d crashes", got, s.stats.Delivered(), crashes)
	}
	if s.crashStreak.Load() != 0 {
		t.Error("the streak goes on after a success")
	}
}

func TestSenderPausesTheSinkWhenRetriesAreExhausted(t *testing.T) {
	t.Parallel()
	s := testSender(t, &scriptedSink{write: func(*sdk.Batch) (sdk.WriteResult, error) { return reject(sdk.ClassTransient, "down") }})
	s.own.Retry.MaxAttempts, s.own.Retry.OnExhausted = 3, exhaustedHold
	ctx, cancel := context.WithCancel(t.Context())
	s.drainCtx = ctx
	done := make(chan error)
	go func() { done <- s.send(testBatch("a"), 0, 1, s.newRetryState()) }()
	for !s.gate.Paused() {
		time.Sleep(time.Millisecond)
	}
	stored, err := s.pauses.Load(t.Context(), "test")
	for err == nil && stored == nil {
		time.Sleep(time.Millisecond)
		stored, err = s.pauses.Load(t.Context(), "test")
	}
	if err != nil || !strings.Contains(stored.Reason, "no") {
		t.Errorf("stored pause %+v, %v", stored, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, errStopped) {
		t.Errorf("send returns %v", err)
	}
}

func TestValidateAnswerDistrustsContradictions(t *testing.T) {
	t.Parallel()
	b := &sdk.Batch{Records: make([]sdk.Record, 2)}
	for name, r := range map[string]sdk.WriteResult{
		"no outcome":                {},
		"rejected without an error": {Outcome: sdk.Rejected},
		"partial without failures":  {Outcome: sdk.Partial},
		"failure beyond the batch":  {Outcome: sdk.Partial, Failures: []sdk.Failure{{Index: 2}}},
		"failure twice":             {Outcome: sdk.Partial, Failures: []sdk.Failure{{Index: 1}, {Index: 1}}},
	} {
		e := validateAnswer(b, &r, nil)
		if e == nil || e.Class != sdk.ClassTransient || r.Outcome != sdk.OutcomeUnspecified {
			t.Errorf("%s: %v, outcome %v", name, e, r.Outcome)
		}
	}
}

func TestValidateAnswerClassifies(t *testing.T) {
	t.Parallel()
	b := &sdk.Batch{Records: make([]sdk.Record, 2)}
	no := &sdk.Error{Code: "no"}
	for name, c := range map[string]struct {
		result sdk.WriteResult
		err    error
		class  sdk.Class // unspecified: no failure
	}{
		"committed":               {result: sdk.WriteResult{Outcome: sdk.Committed}},
		"staged":                  {result: sdk.WriteResult{Outcome: sdk.Staged}},
		"partial, all of them":    {result: sdk.WriteResult{Outcome: sdk.Partial, Failures: []sdk.Failure{{Index: 1}, {Index: 0}}}},
		"rejected":                {result: sdk.WriteResult{Outcome: sdk.Rejected, Err: &sdk.Error{Class: sdk.ClassPermanent}}, class: sdk.ClassPermanent},
		"rejected without class":  {result: sdk.WriteResult{Outcome: sdk.Rejected, Err: no}, class: sdk.ClassTransient},
		"an error":                {err: errors.New("reset"), class: sdk.ClassTransient},
		"an error with an answer": {result: sdk.WriteResult{Outcome: sdk.Committed}, err: &sdk.Error{Class: sdk.ClassConfig}, class: sdk.ClassConfig},
		"a failure before 0":      {result: sdk.WriteResult{Outcome: sdk.Partial, Failures: []sdk.Failure{{Index: -1}}}, class: sdk.ClassTransient},
	} {
		e := validateAnswer(b, &c.result, c.err)
		if (e == nil) != (c.class == sdk.ClassUnspecified) || e != nil && e.Class != c.class || c.err != nil && c.result.Outcome != sdk.OutcomeUnspecified {
			t.Errorf("%s: %v, outcome %v", name, e, c.result.Outcome)
		}
	}
	if no.Class != sdk.ClassUnspecified {
		t.Error("the error of the plugin is changed")
	}
}

func TestRetryStateIsExhaustedByAttemptsOrAge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := testTarget(&scriptedSink{})
	limit := s.own.Retry
	limit.MaxAttempts = 2
	var st retryState
	if st.exhausted(limit, now) || !st.exhausted(limit, now) {
		t.Error("two attempts are allowed")
	}
	limit.MaxAttempts, limit.MaxAge = 0, time.Minute
	st = retryState{}
	if st.exhausted(limit, now) || st.exhausted(limit, now.Add(59*time.Second)) || !st.exhausted(limit, now.Add(time.Minute)) {
		t.Error("a minute is allowed")
	}
}

func TestWindowShrinksOncePerOverload(t *testing.T) {
	t.Parallel()
	var w window.Window
	if w.Within(10) != 10 {
		t.Fatalf("starts at %d", w.Current())
	}
	began := time.Now()
	throttled := &sdk.Error{Class: sdk.ClassThrottled}
	w.OnResult(began, throttled)
	w.OnResult(began, throttled) // was in flight when the window shrank
	if w.Current() != 7 {
		t.Errorf("%d after an overload, want 7", w.Current())
	}
	w.OnResult(time.Now(), &sdk.Error{Class: sdk.ClassTransient, Code: "reset"})
	if w.Current() != 7 {
		t.Errorf("%d after another failure, want 7", w.Current())
	}
	for range 8 {
		w.OnResult(time.Now(), nil)
	}
	if w.Current() != 8 {
		t.Errorf("%d after a window of successes, want 8", w.Current())
	}
}

// After many consecutive crashes the events are probably not the cause. An event is then
// a dead letter only when it has crashed the plugin for longer than a quarantine.
func TestSenderDoubtsAfterManyCrashesAndStillGoesOn(t *testing.T) {
	t.Parallel()
	crashes, forgiven := 0, 0
	sink := &forgivingSink{scriptedSink: scriptedSink{write: func(*sdk.Batch) (sdk.WriteResult, error) {
		crashes++
		return reject(sdk.ClassTransient, codeDied)
	}}, forgiven: &forgiven}
	s := testSender(t, sink)
	b := testBatch("a", "b", "c", "d", "e")
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	if got := deadLettersOf(t, s); got != "a b c d e" || forgiven != maxCrashStreak || crashes < maxCrashStreak*eventCrashes+2*doubtfulCrashes {
		t.Errorf("dead letters %q, %d forgiven, %d crashes", got, forgiven, crashes)
	}
}

// An event that crashed the plugin and is a dead letter is not sent when it is read again, as after the loss of staged events.
func TestSenderDoesNotSendACrashingEventAgain(t *testing.T) {
	t.Parallel()
	var calls []string
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		calls = append(calls, namesOf(b))
		if strings.Contains(namesOf(b), "crash") {
			return reject(sdk.ClassTransient, codeDied)
		}
		return b.Committed(), nil
	}})
	b := testBatch("a", "crash-1", "b", "crash-2", "c")
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	calls = nil
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(calls, ", "); got != "a, b, c" {
		t.Errorf("calls %s", got)
	}
	if got := s.stats.Status("test"); got.DeadLetters != 2 || got.Delivered != 6 || !strings.Contains(got.LastError, "ends whenever it is sent this event") {
		t.Errorf("%+v", got)
	}
}

// After a resume, the events have all their attempts again.
func TestSenderContinuesAfterAPause(t *testing.T) {
	t.Parallel()
	attempts := 0
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if attempts++; attempts < 6 {
			return reject(sdk.ClassTransient, "down")
		}
		return b.Committed(), nil
	}})
	s.own.Retry.MaxAttempts, s.own.Retry.OnExhausted = 3, exhaustedHold
	core, logs := observer.New(zap.ErrorLevel)
	s.logger = zap.New(core)
	done := make(chan error)
	go func() { done <- s.send(testBatch("a"), 0, 1, s.newRetryState()) }()
	for {
		select {
		case err := <-done:
			pauses := logs.FilterMessageSnippet("sink paused").Len()
			if err != nil || attempts != 6 || pauses != 1 || s.stats.Delivered() != 1 {
				t.Errorf("%v after %d attempts and %d pauses, delivered %d", err, attempts, pauses, s.stats.Delivered())
			}
			return
		case <-time.After(time.Millisecond):
			if s.gate.Paused() { // resume it until the sender has written its pause and goes on
				_ = s.pauses.Change(t.Context(), "test", s.gate, nil)
			}
		}
	}
}

// Exhausted retries end with dead letters unless the section says hold, and a plugin that fails internally has its
// batch bisected: the event at fault gets all attempts alone.
func TestSenderGivesUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		fails       sdk.Class
		maxAttempts int
		wantCalls   string
		dead        string
	}{
		{"a transient failure", sdk.ClassTransient, 2, "a bad b, a bad b", "a bad b"},
		{"an internal failure", sdk.ClassInternal, 0, "a bad b, a bad b, a, bad b, bad, bad, b", "bad"},
		{"no support", sdk.ClassUnsupported, 0, "a bad b, a, bad b, bad, b", "bad"},
	} {
		var calls []string
		s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
			calls = append(calls, namesOf(b))
			if strings.Contains(namesOf(b), "bad") {
				return reject(c.fails, "x")
			}
			return b.Committed(), nil
		}})
		s.cfg.MaxInternal, s.own.Retry.MaxAttempts = 2, c.maxAttempts
		b := testBatch("a", "bad", "b")
		if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(calls, ", "); got != c.wantCalls || deadLettersOf(t, s) != c.dead {
			t.Errorf("%s: calls %s, dead letters %s", c.name, got, deadLettersOf(t, s))
		}
	}
}

// A sink whose process is down, or that is misconfigured, does not use up the attempts of events.
func TestSenderCountsAnswersOnly(t *testing.T) {
	t.Parallel()
	for _, failure := range []sdk.Error{{Class: sdk.ClassTransient, Code: codeDown}, {Class: sdk.ClassConfig, Code: "wrong_password"}} {
		calls := 0
		s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
			if calls++; calls < 6 {
				return reject(failure.Class, failure.Code)
			}
			return b.Committed(), nil
		}})
		s.own.Retry.MaxAttempts = 2
		if err := s.send(testBatch("a"), 0, 1, s.newRetryState()); err != nil || calls != 6 || s.stats.Delivered() != 1 {
			t.Errorf("%s: %v after %d calls, delivered %d", failure.Code, err, calls, s.stats.Delivered())
		}
	}
}

// TestSenderNumbersDeadLetters has failures in the second of two calls of a batch.
func TestSenderNumbersDeadLetters(t *testing.T) {
	t.Parallel()
	s := testSender(t, &scriptedSink{props: sdk.SinkProperties{MaxEvents: 2}, write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if b.FirstSeq == 11 {
			return b.Committed(), nil
		}
		return b.Partial(sdk.Failure{Index: 1, Err: sdk.Errorf(sdk.ClassPermanent, "no", "no")}), nil
	}})
	b := testBatch("a", "b", "c", "d")
	b.firstSeq = 11
	if err := s.send(b, 0, b.count, s.newRetryState()); err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	if err := s.db.Read(t.Context()).NewRaw("SELECT seq FROM dead_letters").Scan(t.Context(), &seqs); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seqs, []uint64{14}) || deadLettersOf(t, s) != "d" {
		t.Errorf("dead letters %v: %s", seqs, deadLettersOf(t, s))
	}
}

func TestWaitsAfterFailures(t *testing.T) {
	t.Parallel()
	s := testSender(t, &scriptedSink{})
	s.cfg.RetryMin, s.cfg.RetryMax, s.cfg.ConfigRetry = time.Second, 10*time.Second, 20*time.Second
	for _, c := range []struct {
		failure  sdk.Error
		state    string
		min, max time.Duration
	}{
		{sdk.Error{Class: sdk.ClassTransient}, "retrying", 0, time.Second},
		{sdk.Error{Class: sdk.ClassThrottled, RetryAfter: 7 * time.Second}, "throttled", 7 * time.Second, 7 * time.Second},
		{sdk.Error{Class: sdk.ClassThrottled, RetryAfter: time.Millisecond}, "throttled", minThrottle, minThrottle},
		{sdk.Error{Class: sdk.ClassThrottled, RetryAfter: 5 * time.Hour}, "throttled", time.Hour, time.Hour},
		{sdk.Error{Class: sdk.ClassThrottled}, "throttled", minThrottle, time.Second},
		{sdk.Error{Class: sdk.ClassConfig}, "misconfigured", 5 * time.Second, 10 * time.Second},
	} {
		wait := s.noteFailure(&c.failure, s.retryPauses())
		if st := s.stats.Status("test"); wait < c.min || wait > c.max || st.State != c.state {
			t.Errorf("%+v: waits %s, state %s", c.failure, wait, st.State)
		}
	}
}

// TestLossOfStagedEvents: the next events of a batch are not sent in another session than those before them.
func TestLossOfStagedEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		staged  uint64 // session in which the batch is staged; 0: it is not
		state   retryState
		attempt uint32
		want    bool
	}{
		{"nothing staged", 0, retryState{}, 1, false},
		{"staged in this session", 5, retryState{}, 1, false},
		{"staged in another session", 4, retryState{}, 1, true},
		{"earlier batches in this session", 4, retryState{session: 5}, 1, false},
		{"earlier batches in another session", 5, retryState{session: 4}, 1, true},
		{"events that may crash, for the first time", 4, retryState{cautious: true, exclusive: true}, 1, true},
		{"events that crashed the plugin again", 4, retryState{cautious: true, exclusive: true}, 2, false},
		{"again, without caution", 4, retryState{exclusive: true}, 2, true},
		{"again, beside others", 4, retryState{cautious: true}, 2, true},
	} {
		s := &sender{target: testTarget(&scriptedSink{current: 5})}
		b := testBatch("a")
		if c.staged != 0 {
			b.markStaged(c.staged, 1)
		}
		if got := s.lostStaged(b, c.state, c.attempt); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// forgivingSink counts the dead letters that explain an exit.
type forgivingSink struct {
	scriptedSink
	forgiven *int
}

func (s *forgivingSink) ForgiveExits() { *s.forgiven++ }

// The window shrinks while the sink is throttled or late, and grows when it takes batches again.
func TestWindowFollowsCalls(t *testing.T) {
	t.Parallel()
	var answers []*sdk.Error
	s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
		if len(answers) == 0 {
			return sdk.WriteResult{Outcome: sdk.Committed}, nil
		}
		failure := answers[0]
		answers = answers[1:]
		return sdk.WriteResult{Outcome: sdk.Rejected, Err: failure}, nil
	}})
	s.window.Within(10)
	for _, c := range []struct {
		answers []*sdk.Error
		want    int
	}{
		{nil, 10},
		{[]*sdk.Error{sdk.Errorf(sdk.ClassTransient, "busy", "no")}, 10},
		{[]*sdk.Error{{Class: sdk.ClassThrottled, Code: "slow", RetryAfter: time.Nanosecond}}, 7},
	} {
		answers = c.answers
		if err := s.send(testBatch("a"), 0, 1, s.newRetryState()); err != nil {
			t.Fatal(err)
		}
		if got := s.window.Current(); got != c.want {
			t.Errorf("after %v: %d, want %d", c.answers, got, c.want)
		}
	}
}

// A dead letter has the sequence number under which the sink was sent its event, however it was found.
func TestNumbersOfFoundDeadLetters(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]sdk.Class{"rejected": sdk.ClassPermanent, "unsupported": sdk.ClassUnsupported, "panics": sdk.ClassInternal} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := map[string]uint64{}
			s := testSender(t, &scriptedSink{write: func(b *sdk.Batch) (sdk.WriteResult, error) {
				names := strings.Fields(namesOf(b))
				for i, name := range names {
					sent[name] = b.FirstSeq + uint64(i)
				}
				if strings.Contains(namesOf(b), "bad") {
					return reject(class, "no")
				}
				return sdk.WriteResult{Outcome: sdk.Committed}, nil
			}})
			b := testBatch("a", "bad1", "c", "d", "e", "bad2", "g")
			b.firstSeq = 41
			if err := s.send(b, 0, 7, s.newRetryState()); err != nil {
				t.Fatal(err)
			}
			list, _, err := deadletter.NewService(s.db, s.limits, nil).List(t.Context(), 1, deadletter.Filter{}, 100, 0)
			if err != nil || len(list) != 2 {
				t.Fatalf("%d dead letters (%v), want 2", len(list), err)
			}
			for _, e := range list {
				if want := map[string]uint64{"bad1": 42, "bad2": 46}[e.Event]; e.Seq != want || sent[e.Event] != want {
					t.Errorf("%s has the number %d and was sent as %d, want %d", e.Event, e.Seq, sent[e.Event], want)
				}
			}
			if sent["a"] != 41 || sent["g"] != 47 || s.stats.Delivered() != 5 {
				t.Errorf("sent %v, %d delivered", sent, s.stats.Delivered())
			}
		})
	}
}
