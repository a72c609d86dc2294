package ingestion

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// The readers of the worker, at the journal and in the database: what is sent
// as it happens, and what is imported.
const (
	liveReader       = "worker"
	historicalReader = "worker/historical"
)

// Worker processes events: it walks the journal, decodes, and hands batches to
// the stages, each batch in one database transaction with the worker's cursor.
// The cursor in the database is the truth, so a crash neither skips an event
// nor processes one twice.
//
// It walks in two lanes with a cursor each. Imports (historical_migration) wait
// while events that are sent as they happen are to be processed, so that a
// large import delays nobody. Within a lane the order is kept.
//
// While the database is away the worker waits for it, and nothing is lost:
// capture goes on, the journal holds. An event that fails a stage every time is
// set aside as a dead letter, and the others go on in order.
type Worker struct {
	cfg     Config
	log     Log
	store   *store
	stages  []Stage
	known   Known
	metrics *Metrics
	logger  *zap.Logger

	journalID  string
	turn       sync.Mutex // one batch of either lane at a time
	keys       hourlyKeys // guarded by turn
	live, past *lane

	stop context.CancelFunc // no new batch
	kill context.CancelFunc // not even the one at hand
	done sync.WaitGroup
}

// WorkerStatus is how a lane of the worker is doing.
type WorkerStatus struct {
	// Position is how far it has come in the journal.
	Position journal.Position
	// Waiting is why it makes no progress, nil when it does.
	Waiting error
	// Since is since when Waiting has been so.
	Since time.Time
}

// NewWorker returns a worker that has not started. Stages are called in the
// order given. known may be nil: then only repeats within a batch are taken out
// before the stages.
func NewWorker(cfg Config, log Log, d *db.DB, stages []Stage, known Known, m *Metrics, logger *zap.Logger) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg: cfg, log: log, store: &store{d}, stages: stages, known: known, metrics: m, logger: logger.Named("ingestion"),
	}
	w.live = newLane(w, liveReader, false)
	w.past = newLane(w, historicalReader, true)
	return w, nil
}

// Start registers the worker at the journal and begins to process. A database
// that is away delays the processing, not the start.
func (w *Worker) Start(ctx context.Context) error {
	for _, l := range []*lane{w.live, w.past} {
		at, err := w.log.Register(ctx, l.reader, journal.Begin)
		if err != nil {
			return fmt.Errorf("register the worker at the journal: %w", err)
		}
		l.registered = at
	}
	stats, err := w.log.Stats(ctx)
	if err != nil {
		return fmt.Errorf("look at the journal: %w", err)
	}
	w.journalID = stats.ID
	running, stop := context.WithCancel(context.Background())
	living, kill := context.WithCancel(context.Background())
	w.stop, w.kill = stop, kill
	w.done.Go(func() { w.live.run(running, living) })
	w.done.Go(func() { w.past.run(running, living) })
	w.done.Go(func() { w.sweep(running) })
	w.done.Go(func() { w.pacer(running) })
	return nil
}

// Stop finishes the batch at hand and waits for it; when ctx ends first the
// batch is given up, and will be done after the next start.
func (w *Worker) Stop(ctx context.Context) error {
	if w.stop == nil {
		return nil
	}
	w.stop()
	finished := make(chan struct{})
	go func() {
		w.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		w.kill()
		<-finished
	}
	w.kill()
	return nil
}

// Status tells how the processing of events that are sent as they happen is
// doing.
func (w *Worker) Status() WorkerStatus { return *w.live.status.Load() }

// Historical tells how the processing of imports is doing.
func (w *Worker) Historical() WorkerStatus { return *w.past.status.Load() }

// keepUsage is how long the numbers of periods that are over are kept: a year,
// for people who look back.
const keepUsage = 400 * 24 * time.Hour

// sweep removes warnings and dead letters that are too old, now and then. A
// clock that leaps ahead makes nothing old until it has stayed there for a while.
func (w *Worker) sweep(ctx context.Context) {
	for ages := journal.NewClock(nil); sleep(ctx, 10*time.Minute); {
		now := ages.Now()
		err := errors.Join(w.store.dropWarnings(ctx, now.Add(-w.cfg.KeepWarnings)), w.store.dropUsage(ctx, now.Add(-keepUsage)), w.ExpireDeadLetters(ctx, now.Add(-w.cfg.KeepDeadLetters)))
		if err != nil && ctx.Err() == nil {
			w.logger.Warn("cannot remove what is too old", zap.Error(err))
		}
	}
}
