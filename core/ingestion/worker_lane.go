package ingestion

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// lane is one walk of the worker through the journal.
type lane struct {
	*Worker
	reader     string
	historical bool
	logger     *zap.Logger
	registered journal.Position

	feed     *feed
	commit   *committer
	work     []sdk.Event   // the copies the stages may change
	poisoned int           // events set aside in a row
	filled   atomic.Uint64 // events read so far; those beyond the status wait to be processed
	status   atomic.Pointer[WorkerStatus]

	pace        pace // of the pacer, as the two below
	behindSince time.Time
	toldAt      time.Time
	pacing      atomic.Pointer[Progress]
}

func newLane(w *Worker, reader string, historical bool) *lane {
	l := &lane{Worker: w, reader: reader, historical: historical, logger: w.logger.With(zap.String("reader", reader))}
	l.status.Store(&WorkerStatus{})
	return l
}

func (l *lane) progress(p journal.Position) { l.status.Store(&WorkerStatus{Position: p}) }

func (l *lane) waiting(err error) {
	s := *l.status.Load()
	if s.Waiting == nil {
		s.Since = time.Now()
	}
	s.Waiting = err
	l.status.Store(&s)
}

// run is the lane's life: running ends when it should stop, living when it
// must.
func (l *lane) run(running, living context.Context) {
	at, ok := l.begin(running, l.registered)
	if !ok {
		return
	}
	l.feed = newFeed(l.log, l.cfg.Limits, at)
	l.feed.wants = func(rec *event.Record) bool { return rec.Historical == l.historical }
	l.commit = newCommitter(l.log, l.reader, l.registered, l.logger)
	l.progress(at)
	var committing sync.WaitGroup
	committing.Go(func() { l.commit.run(running) })
	l.commit.to(at)
	l.batches(running, living)
	committing.Wait()
	if err := l.commit.flush(living); err != nil {
		l.logger.Warn("the journal was not told how far the worker came; the database knows", zap.Error(err))
	}
}

// begin finds out where to go on, waiting for the database if need be.
func (l *lane) begin(ctx context.Context, registered journal.Position) (at journal.Position, ok bool) {
	pause := backoff{least: l.cfg.Worker.RetryMin, most: l.cfg.Worker.RetryMax}
	for {
		c, found, err := l.store.cursor(ctx, l.reader)
		switch {
		case err != nil:
			l.waiting(err)
			l.logger.Warn("waiting for the database", zap.Error(err))
			if !sleep(ctx, pause.pause()) {
				return at, false
			}
		case !found:
			return journal.Position{Count: registered.Count}, true
		case c.journal != l.journalID:
			l.logger.Warn("the journal is not the one the database was last fed from: reading it from its beginning",
				zap.String("was", c.journal), zap.String("is", l.journalID))
			return registered, true
		case c.position.Before(registered):
			l.logger.Warn("the database is older than the journal's cursor: events that the journal still keeps are processed again",
				zap.Uint64("database", c.position.Seq), zap.Uint64("journal", registered.Seq))
			return journal.Position{Seq: c.position.Seq, Index: c.position.Index, Count: registered.Count}, true
		default:
			return c.position, true
		}
	}
}

// batches processes until it is told to stop. While one batch is in the
// database, the next is read and decoded.
func (l *lane) batches(running, living context.Context) {
	ready := make(chan *run)
	spare := make(chan *run, 2)
	spare <- new(run)
	spare <- new(run)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(ready)
		l.read(running, ready, spare)
	})
	for r := range ready {
		if l.historical && !r.idle() {
			l.giveWay(running)
		}
		if err := l.process(living, running, r, l.attempts()); err != nil {
			break
		}
		spare <- r
	}
	l.stop()
	reading.Wait()
}

// read fills runs until ctx ends.
func (l *lane) read(ctx context.Context, ready chan<- *run, spare <-chan *run) {
	pause := backoff{least: l.cfg.Worker.RetryMin, most: l.cfg.Worker.RetryMax}
	for {
		var r *run
		select {
		case r = <-spare:
		case <-ctx.Done():
			return
		}
		if !l.fill(ctx, r, &pause) {
			return
		}
		select {
		case ready <- r:
		case <-ctx.Done():
			return
		}
	}
}

// historicalEvents bounds a batch of imported events: while it is in the
// database, others wait.
const historicalEvents = 1000

// fill waits until there is something to do and puts it into r.
func (l *lane) fill(ctx context.Context, r *run, pause *backoff) bool {
	r.reset(l.feed.pos)
	most := l.cfg.Worker.MaxEvents
	if l.historical {
		most = min(most, historicalEvents)
	}
	ok := l.feed.gather(ctx, r, gathering{
		most: most, bytes: l.cfg.Worker.MaxBytes, idle: (*run).idle, pause: pause, log: l.logger,
	})
	l.filled.Store(r.end.Count)
	return ok
}

// patience is how long an import waits for a pause in what is sent live.
const patience = 5 * time.Second

// busy reports whether events that were read wait to be processed.
func (l *lane) busy() bool { return l.filled.Load() > l.status.Load().Position.Count }

// giveWay waits until the live lane has nothing to do, but not for ever.
func (l *lane) giveWay(ctx context.Context) {
	for deadline := time.Now().Add(patience); l.live.busy() && time.Now().Before(deadline); {
		if !sleep(ctx, 5*time.Millisecond) {
			return
		}
	}
}
