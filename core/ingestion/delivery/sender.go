package delivery

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// sender sends batches to a sink until every record is committed, staged or a
// dead letter. It retries transient failures, bisects a batch that the sink
// rejects, and isolates events that crash the plugin. Its methods are called
// from many goroutines, one per batch in flight.
type sender struct {
	*target
	gate        *pause.Gate
	window      window.Window
	deadLetters *deadletter.Store
	pauses      *pause.Store
	source      string // of dead letters
	erased      Erased // nil without erasures

	drainCtx context.Context // ends when nothing new is sent
	killCtx  context.Context // ends when calls at hand are given up

	calls        *window.Calls              // a batch that may crash the plugin is sent alone
	crashStreak  atomic.Int64               // consecutive events that crashed the plugin
	crashed      atomic.Pointer[[]eventKey] // the last of them; nil without any
	doubtfulTime time.Duration
}

// send sends the records of b from index from up to to. It fails with errStopped
// when the delivery stops first, and with errStagedLost.
func (s *sender) send(b *batch, from, to int, st retryState) error {
	pauses := s.retryPauses()
	crashes, since := 0, time.Now()
	for attempt := uint32(1); ; attempt++ {
		if !s.waitReady() {
			return errStopped
		}
		if s.lostStaged(b, st, attempt) {
			return errStagedLost
		}
		switch kept, all, err := s.withoutSkipped(b, from, to); {
		case err != nil:
			return err
		case !all:
			return s.sendIndexes(b, kept, st)
		}
		if n := s.batchSize().count(b.events[from:to]); n < to-from {
			return s.sendParts(b, from, to, n, st)
		}
		session := s.session()
		result, failure := s.call(b.part(s.sessionName(), from, to, attempt), st.exclusive, reader.SpansOf(b.origins, b.seqs[from:to]))
		switch result.Outcome {
		case sdk.Committed:
			s.addDelivered(to - from)
			return nil
		case sdk.Staged:
			b.markStaged(session, b.firstSeq+uint64(to)-1)
			s.stats.SetSucceeded()
			return nil
		case sdk.Partial:
			return s.sendRest(b, from, to, result.Failures, st)
		case sdk.OutcomeUnspecified, sdk.Rejected:
		}
		if failure.Class == sdk.ClassInternal {
			st.internal--
		}
		if isPermanent(failure) || st.internal <= 0 {
			st.internal = max(st.internal, 1)
			return s.bisect(b, from, to, st, failure)
		}
		if failure.Code == codeDied {
			if st.exclusive {
				crashes++
			}
			st.exclusive = true
			if s.crashesSuffice(to-from, crashes, since) {
				return s.isolateCrash(b, from, to, st, failure)
			}
		}
		if isAnswer(failure) && st.exhausted(s.own.Retry, time.Now()) {
			if s.own.Retry.OnExhausted != exhaustedHold {
				return s.addDeadLetters(b, from, to, failure)
			}
			s.hold(failure)
			st.tries = 0
			continue
		}
		if !retry.Sleep(s.drainCtx, s.noteFailure(failure, pauses)) {
			return errStopped
		}
	}
}

// sendParts sends the first n records and then the others. The batch was made before the
// limits of the sink were known, or before they changed.
func (s *sender) sendParts(b *batch, from, to, n int, st retryState) error {
	if err := s.send(b, from, from+n, st); err != nil {
		return err
	}
	return s.send(b, from+n, to, st)
}

// bisect sends the halves of records that the sink will never accept; a single
// one becomes a dead letter.
func (s *sender) bisect(b *batch, from, to int, st retryState, cause *sdk.Error) error {
	if to-from == 1 {
		return s.addDeadLetter(&b.events[from], b.firstSeq+uint64(from), cause)
	}
	half := from + (to-from)/2
	for _, part := range [2][2]int{{from, half}, {half, to}} {
		again := st
		if part[1]-part[0] == 1 {
			again.internal = s.cfg.MaxInternal
		}
		if err := s.send(b, part[0], part[1], again); err != nil {
			return err
		}
	}
	return nil
}

// sendRest handles the failures of a partial answer: permanent ones become dead
// letters, the others are sent again, in order.
func (s *sender) sendRest(b *batch, from, to int, failures []sdk.Failure, st retryState) error {
	s.addDelivered(to - from - len(failures))
	slices.SortFunc(failures, func(a, b sdk.Failure) int { return a.Index - b.Index })
	var rest []int
	var cause *sdk.Error
	for _, f := range failures {
		e := f.Err
		if e == nil {
			e = sdk.Errorf(sdk.ClassTransient, "unspecified", "failed without a reason")
		}
		if isPermanent(e) {
			if err := s.addDeadLetter(&b.events[from+f.Index], b.firstSeq+uint64(from+f.Index), e); err != nil {
				return err
			}
			continue
		}
		if cause == nil {
			cause = e
		}
		rest = append(rest, from+f.Index)
	}
	if cause == nil {
		return nil
	}
	if st.exhausted(s.own.Retry, time.Now()) {
		if s.own.Retry.OnExhausted != exhaustedHold {
			for _, i := range rest {
				if err := s.addDeadLetters(b, i, i+1, cause); err != nil {
					return err
				}
			}
			return nil
		}
		s.hold(cause)
		st.tries = 0
	} else if !retry.Sleep(s.drainCtx, s.noteFailure(cause, s.retryPauses())) {
		return errStopped
	}
	return s.sendIndexes(b, rest, st)
}

// sendIndexes sends single records, consecutive ones together: the sequence
// numbers of a batch have no gaps.
func (s *sender) sendIndexes(b *batch, indexes []int, st retryState) error {
	for start := 0; start < len(indexes); {
		end := start + 1
		for end < len(indexes) && indexes[end] == indexes[end-1]+1 {
			end++
		}
		if err := s.send(b, indexes[start], indexes[end-1]+1, st); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// lostStaged reports whether the sink was opened again since it staged events before
// the next ones of b: a sink that stored these first would have the wrong order. Events
// that crash the plugin for the second time are isolated although they lose those before
// them in b, which are sent again when the cause is found.
func (s *sender) lostStaged(b *batch, st retryState, attempt uint32) bool {
	if st.session != 0 {
		return st.session != s.session()
	}
	return b.state.staged && b.state.session != s.session() && (!st.cautious || !st.exclusive || attempt == 1)
}

// waitReady waits for the end of a pause and for the sink; false when the
// delivery stops first.
func (s *sender) waitReady() bool {
	if !s.gate.Wait(s.drainCtx) {
		return false
	}
	s.stats.SetState(status.Waiting)
	if s.sink.Ready(s.drainCtx) != nil || s.drainCtx.Err() != nil {
		return false
	}
	s.stats.SetState(status.Delivering)
	return s.lease.check()
}

// call sends a batch beside others or, if it may crash the plugin, exclusively.
func (s *sender) call(b *sdk.Batch, exclusive bool, origins []tracing.Origin) (sdk.WriteResult, *sdk.Error) {
	end, err := s.calls.Begin(s.killCtx, exclusive)
	if err != nil {
		return sdk.WriteResult{}, classify(sdk.AsError(err))
	}
	defer end()
	if !s.lease.check() { // it may have ended while the call waited
		return sdk.WriteResult{}, classify(sdk.AsError(errStopped))
	}
	began := time.Now()
	result, failure := s.write(b, origins)
	s.window.OnResult(began, failure)
	if failure == nil {
		s.crashStreak.Store(0)
	}
	return result, failure
}

// write calls the sink. It returns a valid result, or none and an error with a
// class.
func (s *sender) write(b *sdk.Batch, origins []tracing.Origin) (sdk.WriteResult, *sdk.Error) {
	ctx, cancel := context.WithTimeout(s.killCtx, s.cfg.Timeout)
	defer cancel()
	ctx, span := s.tracing.StartBatch(ctx, "deliver events", origins)
	start := time.Now()
	result, err := s.sink.Write(ctx, b)
	failure := validateAnswer(b, &result, err)
	outcome := result.Outcome.String()
	if failure != nil {
		outcome = failure.Class.String()
	}
	endSpan(span, s.name(), b, outcome, failure)
	s.metrics.observeCall(s.name(), outcome, time.Since(start), len(b.Records))
	return result, failure
}

func endSpan(span *tracing.Span, sink string, b *sdk.Batch, outcome string, failure *sdk.Error) {
	span.Text("guidon.sink", sink)
	span.Int("guidon.events", int64(len(b.Records)))
	span.Int("guidon.attempt", int64(b.Attempt))
	if failure == nil {
		outcome = ""
	}
	span.EndWith(outcome)
}

// noteFailure records and logs a failure and returns the pause before the next
// attempt.
func (s *sender) noteFailure(failure *sdk.Error, p *retryPauses) (wait time.Duration) {
	state := status.Retrying
	switch failure.Class {
	case sdk.ClassThrottled:
		state, wait = status.Throttled, failure.RetryAfter
		if wait <= 0 {
			wait = p.normal.Next()
		}
		wait = min(max(wait, minThrottle), maxThrottle)
	case sdk.ClassConfig:
		state, wait = status.Misconfigured, p.misconfigured.Next()
	default:
		wait = p.normal.Next()
	}
	s.stats.SetFailed(state, failure)
	s.logger.Warn("sink write failed; retrying",
		zap.Stringer("class", failure.Class), zap.Duration("in", wait), zap.Error(failure))
	return wait
}

// addDelivered counts committed records.
func (s *sender) addDelivered(n int) {
	s.stats.AddDelivered(n)
	s.metrics.delivered.WithLabelValues(s.name()).Add(float64(n))
}

// addDeadLetters keeps records as dead letters.
func (s *sender) addDeadLetters(b *batch, from, to int, cause *sdk.Error) error {
	for i := from; i < to; i++ {
		if err := s.addDeadLetter(&b.events[i], b.firstSeq+uint64(i), cause); err != nil {
			return err
		}
	}
	return nil
}

// addDeadLetter keeps an event as a dead letter. It waits for the database, and
// fails with errStopped only.
func (s *sender) addDeadLetter(ev *sdk.Event, seq uint64, cause *sdk.Error) error {
	entry := deadletter.New(s.source, ev, cause, time.Now())
	entry.Seq = seq
	backoff := s.backoff()
	for {
		ctx, cancel := context.WithTimeout(s.killCtx, s.cfg.Timeout)
		err := s.deadLetters.Add(ctx, entry)
		cancel()
		if err == nil {
			break
		}
		s.stats.SetFailed(status.WaitingForDatabase, errors.Join(cause, err))
		s.logger.Warn("dead letter write failed; waiting for the database", zap.Error(err))
		if !backoff.Sleep(s.drainCtx) {
			return errStopped
		}
	}
	s.stats.AddDeadLetter()
	s.stats.SetFailed(status.Delivering, cause)
	s.deadMetrics.CountAdded(s.source, 1)
	s.logger.Error("event dead-lettered",
		zap.String("event_uuid", ev.UUID), zap.Int64("project_id", ev.ProjectID), zap.Error(cause))
	return nil
}

// hold pauses the sink after its retries are exhausted. The pause takes effect
// now and is written to the database if possible.
func (s *sender) hold(cause error) {
	p := &Pause{At: time.Now().UTC().Truncate(time.Microsecond), Reason: deadletter.Clean("retries exhausted: " + cause.Error())}
	s.gate.Hold(p)
	s.logger.Error("sink paused: retries exhausted; resume it to go on", zap.Error(cause))
	ctx, cancel := context.WithTimeout(s.killCtx, s.cfg.Timeout)
	defer cancel()
	if err := s.pauses.Change(ctx, s.name(), s.gate, p); err != nil {
		s.logger.Warn("sink pause write failed: the pause ends at the next restart", zap.Error(err))
	}
}

// loadPause reads from the database whether the sink is paused. It waits for the
// database; false when the delivery stops first.
func (s *sender) loadPause() bool {
	if _, known, _ := s.gate.Get(); known {
		return true
	}
	return retry.Until(s.drainCtx, s.backoff(), func() error {
		if _, known, _ := s.gate.Get(); known {
			return nil
		}
		p, err := s.pauses.Load(s.drainCtx, s.name())
		if err == nil {
			s.gate.Set(p)
		}
		return err
	}, func(err error) { s.stats.SetFailed(status.WaitingForDatabase, err) })
}
