package pipeline

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// stageRunner runs the stages in transactions, one at a time: those of both
// lanes and of replays. The transactions of several partitions run side by side.
type stageRunner struct {
	stages       []Stage
	deduplicator Deduplicator
	db           *db.DB
	warnings     *warning.Store
	timeout      time.Duration
	erased       Erased // may be nil
	known        Erased // erased as of the running transaction; may be nil

	running chan struct{} // holds a token while a transaction runs
	slots   chan struct{} // the same for all partitions
	keys    warning.HourlyKeys
}

// transaction runs fn in a transaction and writes the warnings that are added
// inside it. after is the number of the record before the events. A panic of fn becomes
// an error.
func (s *stageRunner) transaction(ctx context.Context, after uint64, fn func(ctx context.Context, warnings *warning.Collector) error) (err error) {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.erased != nil {
		defer s.erased.Begin()()
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer recoverAsError(&err)
	warnings := warning.NewCollector(&s.keys, time.Now())
	return s.db.Tx(warnings.Attach(ctx), func(ctx context.Context) error {
		if s.known, err = loadErased(ctx, s.erased, after); err != nil {
			return err
		}
		if err := fn(ctx, warnings); err != nil {
			return err
		}
		return warnings.Save(ctx, s.warnings)
	})
}

// recoverAsError turns a panic into an error.
func recoverAsError(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// runStages hands a batch to the stages.
func (s *stageRunner) runStages(ctx context.Context, batch []*sdk.Event) error {
	for _, stage := range s.stages {
		ctx, span := tracing.Child(ctx, stage.Name())
		err := stage.Process(ctx, batch)
		span.End(err)
		if err != nil {
			return fmt.Errorf("stage %s: %w", stage.Name(), err)
		}
	}
	return nil
}

// filterNew returns the events of a batch that have not been processed before.
func (s *stageRunner) filterNew(ctx context.Context, batch []*sdk.Event) ([]*sdk.Event, error) {
	if s.deduplicator == nil || len(batch) == 0 {
		return batch, nil
	}
	known, err := s.deduplicator.Known(ctx, batch)
	if err != nil {
		return nil, fmt.Errorf("look for duplicates: %w", err)
	}
	kept := batch[:0]
	for i, ev := range batch {
		if i >= len(known) || !known[i] {
			kept = append(kept, ev)
		}
	}
	return kept, nil
}

// Replay processes one event in a transaction that claim begins. Without an
// error claim returns false if the event must not be processed; then Replay does
// nothing. An event that was processed before is only claimed.
func (s *stageRunner) Replay(ctx context.Context, ev sdk.Event, claim func(ctx context.Context) (bool, error)) error {
	return s.transaction(ctx, 0, func(ctx context.Context, _ *warning.Collector) error {
		if ok, err := claim(ctx); err != nil || !ok {
			return err
		}
		batch, err := s.filterNew(ctx, []*sdk.Event{&ev})
		if err != nil || len(batch) == 0 {
			return err
		}
		ctx, keep, err := s.checkReplay(ctx, &ev)
		if err != nil || !keep {
			return err
		}
		return s.runStages(ctx, batch)
	})
}

// IsOutage reports whether a failure of Replay is one of the database.
func (w *Worker) IsOutage(ctx context.Context, err error) bool {
	return w.store.isOutage(ctx, err, w.cfg.Timeout)
}
