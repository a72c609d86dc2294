package ingestion

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// sureOf is how many times in a row a batch has to fail, while the database is
// well, before the fault is held to be with the events.
const sureOf = 3

// attempts counts the failures of one batch.
type attempts struct {
	pause    backoff
	failures int // in a row, with the database well
}

func (l *lane) attempts() *attempts {
	return &attempts{pause: backoff{least: l.cfg.Worker.RetryMin, most: l.cfg.Worker.RetryMax}}
}

// process puts a batch into the database, however long it takes: a failure of
// the database is waited out, and a failure of the batch is narrowed down to
// the event that causes it. It fails only when living ends, or when running
// has ended and the batch does not succeed.
func (l *lane) process(living, running context.Context, r *run, a *attempts) error {
	for {
		err := l.try(living, r)
		if err == nil {
			l.poisoned = 0
			return nil
		}
		switch {
		case living.Err() != nil:
			return living.Err()
		case l.outage(living, err):
			a.failures = 0
			l.metrics.retries.WithLabelValues("database").Inc()
		case len(r.events) == 0:
			// Nothing in it can be poison: it must be the database.
		default:
			l.metrics.retries.WithLabelValues("batch").Inc()
			a.failures++
		}
		if a.failures >= sureOf {
			if done, err := l.narrow(living, running, r, a, err); done || err != nil {
				return err
			}
			continue
		}
		l.waiting(err)
		l.logger.Warn("a batch failed and will be tried again", zap.Int("events", len(r.events)),
			zap.Uint64("after", r.begin.Seq), zap.Error(err))
		if !sleep(running, a.pause.pause()) {
			return running.Err()
		}
	}
}

// outage reports whether the failure is the database's: it says so, or it does
// not take even the smallest of transactions.
func (l *lane) outage(ctx context.Context, err error) bool {
	if fault.Is(err, fault.Unavailable) || retryable(err) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Worker.Timeout)
	defer cancel()
	return l.store.probe(ctx) != nil
}

// narrow halves a batch that fails every time; a single event that does is set
// aside. It reports false when the batch has to be tried again as it is.
func (l *lane) narrow(living, running context.Context, r *run, a *attempts, cause error) (done bool, err error) {
	if len(r.events) == 1 {
		return l.bury(living, running, r, a, cause)
	}
	half := len(r.events) / 2
	first, second := *r, run{events: r.events[half:], ends: r.ends[half:], begin: r.ends[half-1], end: r.end}
	first.events, first.ends, first.end = r.events[:half], r.ends[:half], r.ends[half-1]
	for _, part := range []*run{&first, &second} {
		again := l.attempts()
		if len(part.events) > 1 {
			again.failures = sureOf - 1
		}
		if err := l.process(living, running, part, again); err != nil {
			return false, err
		}
	}
	return true, nil
}

// bury keeps the one event of r as a dead letter and goes on behind it. When
// too many in a row would have to be buried, the fault is not theirs: then the
// worker stays where it is.
func (l *lane) bury(living, running context.Context, r *run, a *attempts, cause error) (done bool, err error) {
	ev := &r.events[0]
	if l.poisoned >= l.cfg.Worker.MaxPoison {
		l.waiting(cause)
		l.logger.Error("every event fails; waiting instead of setting more of them aside",
			zap.Int("set_aside", l.poisoned), zap.String("event_uuid", ev.UUID), zap.Error(cause))
		l.metrics.retries.WithLabelValues("stalled").Inc()
		if !sleep(running, l.cfg.Worker.RetryMax) {
			return false, running.Err()
		}
		a.failures = sureOf - 1
		return false, nil
	}
	dead := letter(sourceWorker, ev, &sdk.Error{Class: sdk.ClassPermanent, Code: codeOf(cause), Message: cause.Error()}, time.Now())
	poison := *r
	poison.events = nil
	if gone := l.transaction(living, &poison, func(ctx context.Context) error { return l.store.addLetter(ctx, dead) }); gone != nil {
		a.failures = 0 // the event deserves another chance
		l.waiting(gone)
		return false, nil
	}
	l.poisoned++
	l.metrics.dead.WithLabelValues(sourceWorker).Inc()
	l.logger.Error("an event was set aside", zap.String("event_uuid", ev.UUID), zap.Int64("project_id", ev.ProjectID), zap.Error(cause))
	return true, nil
}

// try runs the stages over a batch in one transaction.
func (l *lane) try(ctx context.Context, r *run) error {
	start := time.Now()
	stored, repeats := 0, 0
	err := l.transaction(ctx, r, func(ctx context.Context) error {
		batch, err := l.fresh(ctx, r)
		if err != nil || len(batch) == 0 {
			return err
		}
		stored, repeats = len(batch), len(r.events)-len(batch)
		return l.through(ctx, batch)
	})
	if err != nil {
		return err
	}
	l.metrics.processed.Add(float64(stored))
	l.metrics.duplicates.Add(float64(repeats))
	l.metrics.batchSize.Observe(float64(len(r.events)))
	l.metrics.batchTime.Observe(time.Since(start).Seconds())
	return nil
}

// transaction runs work, and with it writes the warnings of the run and the
// cursor behind it.
func (l *lane) transaction(ctx context.Context, r *run, work func(ctx context.Context) error) error {
	err := l.guarded(ctx, func(ctx context.Context, warnings *collector) error {
		if err := work(ctx); err != nil {
			return err
		}
		for i := range r.notices {
			if n := &r.notices[i]; !n.Quiet() {
				warnings.add(n.warning())
			}
		}
		for i := range r.broken {
			if err := l.store.addLetter(ctx, brokenLetter(l.journalID, &r.broken[i])); err != nil {
				return err
			}
		}
		return l.store.saveCursor(ctx, l.reader, cursor{l.journalID, r.end})
	})
	if err != nil {
		return err
	}
	l.committed(r)
	return nil
}

// guarded runs work in a transaction, one at a time, and writes the warnings
// given inside it. A panic of work is an error.
func (w *Worker) guarded(ctx context.Context, work func(ctx context.Context, warnings *collector) error) (err error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Worker.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	warnings := newCollector(&w.keys, time.Now())
	return w.store.tx(context.WithValue(ctx, collectorKey{}, warnings), func(ctx context.Context) error {
		if err := work(ctx, warnings); err != nil {
			return err
		}
		return warnings.save(ctx, w.store)
	})
}

// committed is what follows a commit.
func (l *lane) committed(r *run) {
	for i := range r.notices {
		if n := &r.notices[i]; n.Dropped {
			l.metrics.dropped.WithLabelValues(n.Kind).Add(1 + float64(n.More))
		} else {
			l.metrics.changed.WithLabelValues(n.Kind).Add(1 + float64(n.More))
		}
	}
	if n := len(r.broken); n > 0 {
		l.metrics.dead.WithLabelValues(sourceWorker).Add(float64(n))
	}
	l.commit.to(r.end)
	l.progress(r.end)
}

// through hands a batch to the stages.
func (w *Worker) through(ctx context.Context, batch []*sdk.Event) error {
	for _, s := range w.stages {
		if err := s.Process(ctx, batch); err != nil {
			return fmt.Errorf("stage %s: %w", s.Name(), err)
		}
	}
	return nil
}

// eventKey is what makes an event the same event.
type eventKey struct {
	project int64
	uuid    string
}

// fresh copies the events of r that have not been processed before, for the
// stages to change.
func (l *lane) fresh(ctx context.Context, r *run) ([]*sdk.Event, error) {
	l.work = append(l.work[:0], r.events...)
	batch := make([]*sdk.Event, 0, len(l.work))
	seen := make(map[eventKey]struct{}, len(l.work))
	for i := range l.work {
		key := eventKey{l.work[i].ProjectID, l.work[i].UUID}
		if _, ok := seen[key]; ok {
			continue
		}
		seen[key] = struct{}{}
		batch = append(batch, &l.work[i])
	}
	return l.unknown(ctx, batch)
}

// unknown returns the events of a batch that have not been processed before.
func (w *Worker) unknown(ctx context.Context, batch []*sdk.Event) ([]*sdk.Event, error) {
	if w.known == nil || len(batch) == 0 {
		return batch, nil
	}
	known, err := w.known.Known(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("look for repeats: %w", err)
	}
	kept := batch[:0]
	for i, ev := range batch {
		if i >= len(known) || !known[i] {
			kept = append(kept, ev)
		}
	}
	return kept, nil
}
