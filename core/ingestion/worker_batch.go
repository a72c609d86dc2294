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

func (w *Worker) attempts() *attempts {
	return &attempts{pause: backoff{least: w.cfg.Worker.RetryMin, most: w.cfg.Worker.RetryMax}}
}

// process puts a batch into the database, however long it takes: a failure of
// the database is waited out, and a failure of the batch is narrowed down to
// the event that causes it. It fails only when living ends, or when running
// has ended and the batch does not succeed.
func (w *Worker) process(living, running context.Context, r *run, a *attempts) error {
	for {
		err := w.try(living, r)
		if err == nil {
			w.poisoned = 0
			return nil
		}
		switch {
		case living.Err() != nil:
			return living.Err()
		case w.outage(living, err):
			a.failures = 0
			w.metrics.retries.WithLabelValues("database").Inc()
		case len(r.events) == 0:
			// Nothing in it can be poison: it must be the database.
		default:
			w.metrics.retries.WithLabelValues("batch").Inc()
			a.failures++
		}
		if a.failures >= sureOf {
			if done, err := w.narrow(living, running, r, a, err); done || err != nil {
				return err
			}
			continue
		}
		w.waiting(err)
		w.logger.Warn("a batch failed and will be tried again", zap.Int("events", len(r.events)),
			zap.Uint64("after", r.begin.Seq), zap.Error(err))
		if !sleep(running, a.pause.pause()) {
			return running.Err()
		}
	}
}

// outage reports whether the failure is the database's: it says so, or it does
// not take even the smallest of transactions.
func (w *Worker) outage(ctx context.Context, err error) bool {
	if fault.Is(err, fault.Unavailable) || retryable(err) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Worker.Timeout)
	defer cancel()
	return w.store.probe(ctx) != nil
}

// narrow halves a batch that fails every time; a single event that does is set
// aside. It reports false when the batch has to be tried again as it is.
func (w *Worker) narrow(living, running context.Context, r *run, a *attempts, cause error) (done bool, err error) {
	if len(r.events) == 1 {
		return w.bury(living, running, r, a, cause)
	}
	half := len(r.events) / 2
	first, second := *r, run{events: r.events[half:], ends: r.ends[half:], begin: r.ends[half-1], end: r.end}
	first.events, first.ends, first.end = r.events[:half], r.ends[:half], r.ends[half-1]
	for _, part := range []*run{&first, &second} {
		again := w.attempts()
		if len(part.events) > 1 {
			again.failures = sureOf - 1
		}
		if err := w.process(living, running, part, again); err != nil {
			return false, err
		}
	}
	return true, nil
}

// bury keeps the one event of r as a dead letter and goes on behind it. When
// too many in a row would have to be buried, the fault is not theirs: then the
// worker stays where it is.
func (w *Worker) bury(living, running context.Context, r *run, a *attempts, cause error) (done bool, err error) {
	ev := &r.events[0]
	if w.poisoned >= w.cfg.Worker.MaxPoison {
		w.waiting(cause)
		w.logger.Error("every event fails; waiting instead of setting more of them aside",
			zap.Int("set_aside", w.poisoned), zap.String("event_uuid", ev.UUID), zap.Error(cause))
		w.metrics.retries.WithLabelValues("stalled").Inc()
		if !sleep(running, w.cfg.Worker.RetryMax) {
			return false, running.Err()
		}
		a.failures = sureOf - 1
		return false, nil
	}
	l := letter(sourceWorker, ev, &sdk.Error{Class: sdk.ClassPermanent, Code: codeOf(cause), Message: cause.Error()}, time.Now())
	poison := *r
	poison.events = nil
	if gone := w.transaction(living, &poison, func(ctx context.Context) error { return w.store.addLetter(ctx, l) }); gone != nil {
		a.failures = 0 // the event deserves another chance
		w.waiting(gone)
		return false, nil
	}
	w.poisoned++
	w.metrics.dead.WithLabelValues(sourceWorker).Inc()
	w.logger.Error("an event was set aside", zap.String("event_uuid", ev.UUID), zap.Int64("project_id", ev.ProjectID), zap.Error(cause))
	return true, nil
}

// try runs the stages over a batch in one transaction.
func (w *Worker) try(ctx context.Context, r *run) error {
	start := time.Now()
	stored, repeats := 0, 0
	err := w.transaction(ctx, r, func(ctx context.Context) error {
		batch, err := w.fresh(ctx, r)
		if err != nil || len(batch) == 0 {
			return err
		}
		stored, repeats = len(batch), len(r.events)-len(batch)
		for _, s := range w.stages {
			if err := s.Process(ctx, batch); err != nil {
				return fmt.Errorf("stage %s: %w", s.Name(), err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.metrics.processed.Add(float64(stored))
	w.metrics.duplicates.Add(float64(repeats))
	w.metrics.batchSize.Observe(float64(len(r.events)))
	w.metrics.batchTime.Observe(time.Since(start).Seconds())
	return nil
}

// transaction runs work, and with it writes the warnings of the run and the
// cursor behind it. A panic of work is an error.
func (w *Worker) transaction(ctx context.Context, r *run, work func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Worker.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	warnings := newCollector(&w.keys, time.Now())
	err = w.store.tx(context.WithValue(ctx, collectorKey{}, warnings), func(ctx context.Context) error {
		if err := work(ctx); err != nil {
			return err
		}
		for i := range r.notices {
			if n := &r.notices[i]; !n.Quiet() {
				warnings.add(n.warning())
			}
		}
		if err := warnings.save(ctx, w.store); err != nil {
			return err
		}
		for i := range r.broken {
			if err := w.store.addLetter(ctx, brokenLetter(w.journalID, &r.broken[i])); err != nil {
				return err
			}
		}
		return w.store.saveCursor(ctx, workerReader, cursor{w.journalID, r.end})
	})
	if err != nil {
		return err
	}
	w.committed(r)
	return nil
}

// committed is what follows a commit.
func (w *Worker) committed(r *run) {
	for i := range r.notices {
		if n := &r.notices[i]; n.Dropped {
			w.metrics.dropped.WithLabelValues(n.Kind).Inc()
		} else {
			w.metrics.changed.WithLabelValues(n.Kind).Inc()
		}
	}
	if n := len(r.broken); n > 0 {
		w.metrics.dead.WithLabelValues(sourceWorker).Add(float64(n))
	}
	w.commit.to(r.end)
	w.progress(r.end)
}

// eventKey is what makes an event the same event.
type eventKey struct {
	project int64
	uuid    string
}

// fresh copies the events of r that have not been processed before, for the
// stages to change.
func (w *Worker) fresh(ctx context.Context, r *run) ([]*sdk.Event, error) {
	w.work = append(w.work[:0], r.events...)
	batch := make([]*sdk.Event, 0, len(w.work))
	seen := make(map[eventKey]struct{}, len(w.work))
	for i := range w.work {
		key := eventKey{w.work[i].ProjectID, w.work[i].UUID}
		if _, ok := seen[key]; ok {
			continue
		}
		seen[key] = struct{}{}
		batch = append(batch, &w.work[i])
	}
	if w.known == nil {
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
