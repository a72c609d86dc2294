package ingestion

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// workerReader is the worker's name at the journal and in the database.
const workerReader = "worker"

// Worker processes events: it walks the journal, decodes, and hands batches to
// the stages, each batch in one database transaction with the worker's cursor.
// The cursor in the database is the truth, so a crash neither skips an event
// nor processes one twice.
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

	journalID string
	feed      *feed
	commit    *committer
	keys      hourlyKeys
	work      []sdk.Event // the copies the stages may change
	poisoned  int         // events set aside in a row

	stop   context.CancelFunc // no new batch
	kill   context.CancelFunc // not even the one at hand
	done   sync.WaitGroup
	status atomic.Pointer[WorkerStatus]
}

// WorkerStatus is how the worker is doing.
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
		cfg: cfg, log: log, store: &store{d}, stages: stages, known: known, metrics: m,
		logger: logger.Named("ingestion").With(zap.String("reader", workerReader)),
	}
	w.status.Store(&WorkerStatus{})
	return w, nil
}

// Start registers the worker at the journal and begins to process. A database
// that is away delays the processing, not the start.
func (w *Worker) Start(ctx context.Context) error {
	registered, err := w.log.Register(ctx, workerReader, journal.Begin)
	if err != nil {
		return fmt.Errorf("register the worker at the journal: %w", err)
	}
	stats, err := w.log.Stats(ctx)
	if err != nil {
		return fmt.Errorf("look at the journal: %w", err)
	}
	w.journalID = stats.ID
	running, stop := context.WithCancel(context.Background())
	living, kill := context.WithCancel(context.Background())
	w.stop, w.kill = stop, kill
	w.done.Go(func() { w.run(running, living, registered) })
	w.done.Go(func() { w.sweep(running) })
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

// Status tells how the worker is doing.
func (w *Worker) Status() WorkerStatus { return *w.status.Load() }

func (w *Worker) progress(p journal.Position) { w.status.Store(&WorkerStatus{Position: p}) }

func (w *Worker) waiting(err error) {
	s := *w.status.Load()
	if s.Waiting == nil {
		s.Since = time.Now()
	}
	s.Waiting = err
	w.status.Store(&s)
}

// run is the worker's life: running ends when it should stop, living when it
// must.
func (w *Worker) run(running, living context.Context, registered journal.Position) {
	at, ok := w.begin(running, registered)
	if !ok {
		return
	}
	w.feed = newFeed(w.log, w.cfg.Limits, at)
	w.commit = newCommitter(w.log, workerReader, registered, w.logger)
	w.progress(at)
	var committing sync.WaitGroup
	committing.Go(func() { w.commit.run(running) })
	w.commit.to(at)
	w.batches(running, living)
	committing.Wait()
	if err := w.commit.flush(living); err != nil {
		w.logger.Warn("the journal was not told how far the worker came; the database knows", zap.Error(err))
	}
}

// begin finds out where to go on, waiting for the database if need be.
func (w *Worker) begin(ctx context.Context, registered journal.Position) (at journal.Position, ok bool) {
	pause := backoff{least: w.cfg.Worker.RetryMin, most: w.cfg.Worker.RetryMax}
	for {
		c, found, err := w.store.cursor(ctx, workerReader)
		switch {
		case err != nil:
			w.waiting(err)
			w.logger.Warn("waiting for the database", zap.Error(err))
			if !sleep(ctx, pause.pause()) {
				return at, false
			}
		case !found:
			return journal.Position{Count: registered.Count}, true
		case c.journal != w.journalID:
			w.logger.Warn("the journal is not the one the database was last fed from: reading it from its beginning",
				zap.String("was", c.journal), zap.String("is", w.journalID))
			return registered, true
		case c.position.Before(registered):
			w.logger.Warn("the database is older than the journal's cursor: events that the journal still keeps are processed again",
				zap.Uint64("database", c.position.Seq), zap.Uint64("journal", registered.Seq))
			return journal.Position{Seq: c.position.Seq, Index: c.position.Index, Count: registered.Count}, true
		default:
			return c.position, true
		}
	}
}

// batches processes until it is told to stop. While one batch is in the
// database, the next is read and decoded.
func (w *Worker) batches(running, living context.Context) {
	ready := make(chan *run)
	spare := make(chan *run, 2)
	spare <- new(run)
	spare <- new(run)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(ready)
		w.read(running, ready, spare)
	})
	for r := range ready {
		if err := w.process(living, running, r, w.attempts()); err != nil {
			break
		}
		spare <- r
	}
	w.stop()
	reading.Wait()
}

// read fills runs until ctx ends.
func (w *Worker) read(ctx context.Context, ready chan<- *run, spare <-chan *run) {
	pause := backoff{least: w.cfg.Worker.RetryMin, most: w.cfg.Worker.RetryMax}
	for {
		var r *run
		select {
		case r = <-spare:
		case <-ctx.Done():
			return
		}
		if !w.fill(ctx, r, &pause) {
			return
		}
		select {
		case ready <- r:
		case <-ctx.Done():
			return
		}
	}
}

// fill waits until there is something to do and puts it into r.
func (w *Worker) fill(ctx context.Context, r *run, pause *backoff) bool {
	r.reset(w.feed.pos)
	for r.empty() {
		_, err := w.feed.fill(ctx, r, w.cfg.Worker.MaxEvents, w.cfg.Worker.MaxBytes)
		if err == nil && r.empty() {
			err = w.feed.wait(ctx)
		}
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			w.logger.Warn("cannot read the journal", zap.Error(err))
			if !sleep(ctx, pause.pause()) {
				return false
			}
			continue
		}
		pause.reset()
	}
	return true
}

// sweep removes warnings and dead letters that are too old, now and then.
func (w *Worker) sweep(ctx context.Context) {
	for sleep(ctx, 10*time.Minute) {
		now := time.Now()
		err := errors.Join(w.store.dropWarnings(ctx, now.Add(-w.cfg.KeepWarnings)), w.store.dropLetters(ctx, now.Add(-w.cfg.KeepDeadLetters)))
		if err != nil && ctx.Err() == nil {
			w.logger.Warn("cannot remove what is too old", zap.Error(err))
		}
	}
}
