package delivery

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// staging keeps count of the events that a sink has accepted and not committed,
// and flushes them. Staged events live in one session of the plugin: when it is
// opened again they are lost and must be read and sent again. It is for the
// goroutine of the delivery.
type staging struct {
	*target
	log    reader.Log
	sched  *scheduler
	sender *sender

	events       int
	bytes        int
	since        time.Time // when the oldest was staged
	emptyFlushes int       // consecutive flushes that committed nothing
}

// add counts a batch that the sink has staged and frees its events. It returns
// false if the sink was opened again in between.
func (s *staging) add(b *batch) bool {
	if b.state.splitSession || b.state.session != s.session() {
		return false
	}
	if s.events == 0 {
		s.since = time.Now()
	}
	s.events += b.count
	s.bytes += b.bytes
	b.release()
	s.stats.SetStaged(s.events, s.bytes, s.since)
	return true
}

func (s *staging) reset() {
	s.events, s.bytes = 0, 0
	s.stats.SetStaged(0, 0, time.Time{})
}

// dueReason returns why the staged events must be flushed now; FlushUnspecified
// when they need not be. cautious flushes each batch.
func (s *staging) dueReason(cautious bool) sdk.FlushReason {
	if s.events == 0 {
		return sdk.FlushUnspecified
	}
	limits := s.stagedLimits()
	switch {
	case cautious || s.events >= limits.events || s.bytes >= limits.bytes || !s.reportsSessions():
		return sdk.FlushSize
	case time.Since(s.since) >= limits.age:
		return sdk.FlushTimer
	}
	return sdk.FlushUnspecified
}

// untilDue returns how long the oldest staged event may still wait.
func (s *staging) untilDue() time.Duration { return time.Until(s.since.Add(s.stagedLimits().age)) }

// lost reports whether the sink was opened again since it staged events.
func (s *staging) lost() bool {
	b := s.sched.firstStaged()
	return b != nil && b.state.session != s.session()
}

// flush asks the sink to commit the staged events. It returns false if staged events
// remain that must be sent again.
func (s *staging) flush(reason sdk.FlushReason) bool {
	s.stats.SetState(status.Delivering)
	if s.lost() || !s.lease.check() {
		return false
	}
	session := s.session()
	ctx, cancel := context.WithTimeout(s.sender.killCtx, s.cfg.Timeout)
	result, err := s.sink.Flush(ctx, reason, s.sched.lastStagedSeq())
	cancel()
	if err == nil && s.session() == session {
		err = s.addDeadLetters(result.Failures, result.CommittedThrough)
	} else if err == nil {
		err = sdk.Errorf(sdk.ClassTransient, "session_lost", "the plugin was opened anew while it flushed")
	}
	if err != nil {
		s.noteEmptyFlush(classify(sdk.AsError(err)))
		return false
	}
	committed, remain := s.sched.settleStaged(result.CommittedThrough)
	s.sender.addDelivered(committed)
	s.reset()
	if committed == 0 {
		s.noteEmptyFlush(sdk.Errorf(sdk.ClassTransient, "flush_incomplete", "the sink flushed and committed nothing"))
		return !remain
	}
	s.emptyFlushes = 0
	return !remain
}

// noteEmptyFlush records a flush that committed nothing and waits, longer each
// time. The journal keeps the events until a flush succeeds.
func (s *staging) noteEmptyFlush(cause *sdk.Error) {
	s.emptyFlushes++
	s.metrics.emptyFlushes.WithLabelValues(s.name()).Inc()
	pauses := s.retryPauses()
	wait := s.sender.noteFailure(cause, pauses)
	for i := 1; i < min(s.emptyFlushes, 16); i++ {
		wait = max(wait, pauses.normal.Next())
	}
	s.stats.SetFailed(status.NotFlushing, cause)
	retry.Sleep(s.sender.drainCtx, wait)
}

// addDeadLetters keeps the staged records that the sink rejects as dead letters.
// A failure that is not permanent fails the whole flush.
func (s *staging) addDeadLetters(failures []sdk.FlushFailure, through uint64) error {
	for _, f := range failures {
		if f.Err == nil || !isPermanent(f.Err) {
			return sdk.Errorf(sdk.ClassTransient, "flush_incomplete", "record %d was not made safe", f.Seq)
		}
	}
	for _, f := range failures {
		ev, err := s.findEvent(f.Seq)
		if err != nil {
			return err
		}
		if ev == nil {
			s.logger.Error("sink rejected a record that it was not sent", zap.Uint64("seq", f.Seq), zap.Uint64("committed_through", through))
			continue
		}
		if err := s.sender.addDeadLetter(ev, f.Seq, f.Err); err != nil {
			return err
		}
	}
	return nil
}

// findEvent reads the staged event with a sequence number from the journal again,
// redacted as it was sent; nil when there is none.
func (s *staging) findEvent(seq uint64) (*sdk.Event, error) {
	b := s.sched.find(seq)
	if b == nil {
		return nil, nil
	}
	id, historical := b.ids[seq-b.firstSeq], b.place.reader.historical
	source := reader.New(s.log, s.limits, b.place.begin, func(rec *event.Record) bool { return rec.Historical == historical })
	for section := new(reader.Batch); ; {
		section.Reset(source.Position())
		if _, err := source.Fill(s.sender.killCtx, section, 1000, maxBatchBytes); err != nil {
			return nil, err
		}
		for i := range section.Events {
			if uuidBytes(section.Events[i].UUID) == id {
				ev := s.filter.Redacted(section.Events[i])
				return &ev, nil
			}
		}
		if section.Empty() {
			return nil, nil
		}
	}
}
