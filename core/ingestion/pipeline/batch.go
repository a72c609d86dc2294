package pipeline

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// failuresBeforeBisect is how many times in a row a batch must fail, while the
// database is well, before its events are taken for the cause.
const failuresBeforeBisect = 3

// attempts counts the failures of one batch.
type attempts struct {
	backoff  retry.Backoff
	failures int // in a row, with the database well
}

func (l *lane) newAttempts() *attempts { return &attempts{backoff: l.backoff()} }

// process retries a batch until it is in the database: it waits out a failure of
// the database and bisects a batch that fails by itself. It fails only when
// killCtx ends, or when drainCtx has ended and the batch fails.
func (l *lane) process(killCtx, drainCtx context.Context, b *reader.Batch, a *attempts) error {
	for {
		err := l.processOnce(killCtx, b)
		if err == nil {
			l.poisoned = 0
			return nil
		}
		switch {
		case killCtx.Err() != nil:
			return killCtx.Err()
		case isFenced(err):
			return l.resolveFenced(killCtx, b, err)
		case l.IsOutage(killCtx, err):
			a.failures = 0
			l.metrics.retries.WithLabelValues("database").Inc()
		case len(b.Events) == 0:
			// Without events the failure is one of the database.
		default:
			l.metrics.retries.WithLabelValues("batch").Inc()
			a.failures++
		}
		if a.failures >= failuresBeforeBisect {
			if done, err := l.bisect(killCtx, drainCtx, b, a, err); done || err != nil {
				return err
			}
			continue
		}
		l.setWaiting(err)
		l.logger.Warn("batch failed; retrying", zap.Int("events", len(b.Events)), zap.Uint64("after", b.Begin.Seq), zap.Error(err))
		if !a.backoff.Sleep(drainCtx) {
			return drainCtx.Err()
		}
	}
}

// resolveFenced returns nil if an earlier attempt has committed b although its commit
// failed, else err.
func (l *lane) resolveFenced(ctx context.Context, b *reader.Batch, err error) error {
	if done, openErr := l.cursor.isCommitted(ctx, cursorAt(l.journalID, b.End)); openErr != nil || !done {
		return err
	}
	l.logger.Info("batch was committed although its commit failed", zap.Int("events", len(b.Events)), zap.Uint64("after", b.Begin.Seq))
	l.poisoned = 0
	l.moveTo(b.End)
	return nil
}

// moveTo notes that everything before p is committed.
func (l *lane) moveTo(p journal.Position) {
	l.commit.MoveTo(p)
	l.setPosition(p)
}

// bisect processes the halves of a batch that fails every time; a single event
// becomes a dead letter. It returns false if the batch must be retried whole.
func (l *lane) bisect(killCtx, drainCtx context.Context, b *reader.Batch, a *attempts, cause error) (done bool, err error) {
	if len(b.Events) == 1 {
		return l.deadLetter(killCtx, drainCtx, b, a, cause)
	}
	half := len(b.Events) / 2
	first, second := *b, reader.Batch{Events: b.Events[half:], Ends: b.Ends[half:], Begin: b.Ends[half-1], End: b.End, Origins: b.Origins}
	first.Events, first.Ends, first.End = b.Events[:half], b.Ends[:half], b.Ends[half-1]
	for _, part := range []*reader.Batch{&first, &second} {
		again := l.newAttempts()
		if len(part.Events) > 1 {
			again.failures = failuresBeforeBisect - 1
		}
		if err := l.process(killCtx, drainCtx, part, again); err != nil {
			return false, err
		}
	}
	return true, nil
}

// deadLetter keeps the one event of b as a dead letter and moves behind it. If
// too many consecutive events failed, the events are not the cause, and the
// worker stays where it is.
func (l *lane) deadLetter(killCtx, drainCtx context.Context, b *reader.Batch, a *attempts, cause error) (done bool, err error) {
	ev := &b.Events[0]
	if l.poisoned >= l.cfg.MaxPoison {
		l.setWaiting(cause)
		l.logger.Error("every event fails: worker stalled, no more events are dead-lettered",
			zap.Int("dead_lettered", l.poisoned), zap.String("event_uuid", ev.UUID), zap.Error(cause))
		l.metrics.retries.WithLabelValues("stalled").Inc()
		if !retry.Sleep(drainCtx, l.cfg.RetryMax) {
			return false, drainCtx.Err()
		}
		a.failures = failuresBeforeBisect - 1
		return false, nil
	}
	entry := deadletter.New(deadletter.SourceWorker, ev, &sdk.Error{Class: sdk.ClassPermanent, Code: fault.CodeOf(cause), Message: cause.Error()}, time.Now())
	skipped := *b
	skipped.Events = nil
	if failure := l.commitBatch(killCtx, &skipped, func(ctx context.Context) error {
		if isDropped(l.known, b, 0) {
			return nil
		}
		return l.deadLetters.Add(ctx, entry)
	}); isFenced(failure) {
		err := l.resolveFenced(killCtx, b, failure)
		return err == nil, err
	} else if failure != nil {
		a.failures = 0 // the database failed: the event gets another chance
		l.setWaiting(failure)
		return false, nil
	}
	l.poisoned++
	l.deadMetrics.CountAdded(deadletter.SourceWorker, 1)
	l.logger.Error("event dead-lettered", zap.String("event_uuid", ev.UUID), zap.Int64("project_id", ev.ProjectID), zap.Error(cause))
	return true, nil
}

// processOnce runs the stages over a batch in one transaction.
func (l *lane) processOnce(ctx context.Context, b *reader.Batch) error {
	start := time.Now()
	ctx, span := l.startSpan(ctx, "process events", b)
	stored, duplicates := 0, 0
	err := l.commitBatch(ctx, b, func(ctx context.Context) error {
		batch, detached, err := l.selectEvents(ctx, b)
		if err != nil || len(batch) == 0 {
			return err
		}
		stored, duplicates = len(batch), len(b.Events)-len(batch)
		return l.runStages(withDetached(ctx, detached), batch)
	})
	span.Int("guidon.events_stored", int64(stored))
	span.End(err)
	if err != nil {
		return err
	}
	l.metrics.processed.Add(float64(stored))
	l.metrics.duplicates.Add(float64(duplicates))
	l.metrics.batchSize.Observe(float64(len(b.Events)))
	l.metrics.batchTime.Observe(time.Since(start).Seconds())
	return nil
}

// commitBatch runs work in a transaction that also writes the warnings of the
// batch, its unreadable and damaged records, and the cursor behind it.
func (l *lane) commitBatch(ctx context.Context, b *reader.Batch, work func(ctx context.Context) error) error {
	err := l.transaction(ctx, b.Begin.Seq, func(ctx context.Context, warnings *warning.Collector) error {
		if err := work(ctx); err != nil {
			return err
		}
		for i := range b.Notices {
			l.addNotice(warnings, b, &b.Notices[i])
		}
		for i := range b.Unreadable {
			u := &b.Unreadable[i]
			if err := l.deadLetters.Add(ctx, deadletter.NewUnreadable(l.journalID, u.Record, u.Err)); err != nil {
				return err
			}
		}
		for _, d := range b.Damaged {
			if err := l.deadLetters.Add(ctx, deadletter.NewDamaged(deadletter.SourceWorker, l.journalID, d)); err != nil {
				return err
			}
		}
		return l.cursor.save(ctx, cursorAt(l.journalID, b.End))
	})
	if err != nil {
		return err
	}
	l.cursor.committed(cursorAt(l.journalID, b.End))
	l.metrics.countNotices(b)
	reader.LogDamaged(l.logger, b)
	if n := len(b.Unreadable) + len(b.Damaged); n > 0 {
		l.deadMetrics.CountAdded(deadletter.SourceWorker, n)
	}
	l.moveTo(b.End)
	return nil
}

// addNotice adds a notice to the warnings, without details if they are about an
// erased person. A notice has no place of its own in the journal; the first record
// of the batch stands for it.
func (l *lane) addNotice(warnings *warning.Collector, b *reader.Batch, n *reader.ProjectNotice) {
	plain := n.Notice
	if l.known != nil && l.known.Verdict(n.ProjectID, n.DistinctID, b.Begin.Seq+1) != erasure.Keep {
		plain.DistinctID, plain.EventUUID, plain.Detail = "", "", nil
	}
	warnings.AddNotice(n.ProjectID, &plain)
}

// eventKey identifies an event.
type eventKey struct {
	project int64
	uuid    string
}

// selectEvents returns copies of the events of b that have not been processed
// before and were not erased, for the stages to change, and those of them that
// must not create a person.
func (l *lane) selectEvents(ctx context.Context, b *reader.Batch) ([]*sdk.Event, map[*sdk.Event]bool, error) {
	l.work = append(l.work[:0], b.Events...)
	batch := make([]*sdk.Event, 0, len(l.work))
	l.place = l.place[:0]
	seen := make(map[eventKey]struct{}, len(l.work))
	for i := range l.work {
		key := eventKey{l.work[i].ProjectID, l.work[i].UUID}
		if _, ok := seen[key]; ok {
			continue
		}
		seen[key] = struct{}{}
		batch, l.place = append(batch, &l.work[i]), append(l.place, i)
	}
	batch, detached := l.filterErased(b, batch, l.place)
	batch, err := l.filterNew(ctx, batch)
	return batch, detached, err
}
