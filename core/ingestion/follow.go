package ingestion

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// Follower is told of events after they have been stored: those that are sent
// as they happen, in order, not imports.
type Follower interface {
	// Name is for logs, and names the cursor: one word.
	Name() string
	// Wants reports whether the events of a project are of interest now. It is
	// asked for every request and must be quick; those of a project that is not
	// wanted are passed over without being decoded.
	Wants(projectID int64) bool
	// Prepare looks at events, which it may keep and change, and returns what
	// stores the outcome: a function that is called once, inside the transaction
	// of its ctx, which also carries the follower's cursor. Whatever takes time
	// belongs into Prepare: on SQLite nobody else can write meanwhile. On an error
	// nothing is kept; it is tried again, in the end one event at a time, and the
	// event that fails every time is passed over and logged.
	Prepare(ctx context.Context, batch []*sdk.Event) (store func(ctx context.Context) error, err error)
}

// Following walks the journal for a follower, with a reader and a cursor of its
// own, behind the worker and never ahead of it. It holds nobody up: neither the
// worker nor the sinks wait for a follower.
type Following struct {
	cfg      Config
	log      Log
	store    *store
	worker   *Worker
	follower Follower
	reader   string
	logger   *zap.Logger

	journalID string
	feed      *feed
	commit    *committer

	stop context.CancelFunc // no new batch
	kill context.CancelFunc // not even the one at hand
	done sync.WaitGroup
}

// NewFollowing returns a Following that has not started.
func NewFollowing(cfg Config, log Log, d *db.DB, w *Worker, f Follower, logger *zap.Logger) *Following {
	return &Following{
		cfg: cfg, log: log, store: &store{d}, worker: w, follower: f, reader: "follower/" + f.Name(),
		logger: logger.Named("ingestion").With(zap.String("follower", f.Name())),
	}
}

// Start registers the follower at the journal and begins. One that is new
// begins with what is accepted from now on.
func (f *Following) Start(ctx context.Context) error {
	at, err := f.log.Register(ctx, f.reader, journal.End)
	if err != nil {
		return fmt.Errorf("register %s at the journal: %w", f.reader, err)
	}
	stats, err := f.log.Stats(ctx)
	if err != nil {
		return fmt.Errorf("look at the journal: %w", err)
	}
	f.journalID = stats.ID
	f.commit = newCommitter(f.log, f.reader, at, f.logger)
	running, stop := context.WithCancel(context.Background())
	living, kill := context.WithCancel(context.Background())
	f.stop, f.kill = stop, kill
	f.done.Go(func() { f.run(running, living, at) })
	return nil
}

// Stop finishes the batch at hand and waits for it; when ctx ends first the
// batch is given up, and will be done after the next start.
func (f *Following) Stop(ctx context.Context) error {
	if f.stop == nil {
		return nil
	}
	f.stop()
	finished := make(chan struct{})
	go func() {
		f.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		f.kill()
		<-finished
	}
	f.kill()
	return nil
}

func (f *Following) run(running, living context.Context, registered journal.Position) {
	at, ok := f.begin(running, registered)
	if !ok {
		return
	}
	f.feed = newFeed(f.log, f.cfg.Limits, at)
	f.feed.wants = func(rec *event.Record) bool { return !rec.Historical && f.follower.Wants(rec.ProjectID) }
	var committing sync.WaitGroup
	committing.Go(func() { f.commit.run(running) })
	pause := backoff{least: f.cfg.Worker.RetryMin, most: f.cfg.Worker.RetryMax}
	r := new(run)
	for f.fill(running, r, &pause) {
		if !f.behind(running, r.end) || f.process(living, running, r) != nil {
			break
		}
	}
	committing.Wait()
	if err := f.commit.flush(living); err != nil {
		f.logger.Warn("the journal was not told how far the follower came; the database knows", zap.Error(err))
	}
}

// begin finds out where to go on, waiting for the database if need be. The
// cursor in the database is the truth, unless it is of another journal.
func (f *Following) begin(ctx context.Context, registered journal.Position) (journal.Position, bool) {
	pause := backoff{least: f.cfg.Worker.RetryMin, most: f.cfg.Worker.RetryMax}
	for {
		c, found, err := f.store.cursor(ctx, f.reader)
		switch {
		case err != nil:
			f.logger.Warn("waiting for the database", zap.Error(err))
			if !sleep(ctx, pause.pause()) {
				return registered, false
			}
		case found && c.journal == f.journalID && registered.Before(c.position):
			return c.position, true
		default:
			return registered, true
		}
	}
}

// followEvents bounds a batch for a follower.
const followEvents = 1000

// fill waits until the journal has something that is wanted, or the cursor has
// to move over what is not; false when ctx ends.
func (f *Following) fill(ctx context.Context, r *run, pause *backoff) bool {
	r.reset(f.feed.pos)
	r.events = nil // the follower may keep those of the batch before
	return f.feed.gather(ctx, r, gathering{
		most: followEvents, bytes: f.cfg.Worker.MaxBytes, idle: func(r *run) bool { return len(r.events) == 0 }, pause: pause, log: f.logger,
	})
}

// behind waits until the worker has come to p; false when ctx ends.
func (f *Following) behind(ctx context.Context, p journal.Position) bool {
	for pause := time.Millisecond; f.worker.Status().Position.Before(p); pause = min(2*pause, 100*time.Millisecond) {
		if !sleep(ctx, pause) {
			return false
		}
	}
	return true
}

// process hands a batch to the follower, however long it takes. It fails only
// when it has to stop.
func (f *Following) process(living, running context.Context, r *run) error {
	pause := backoff{least: f.cfg.Worker.RetryMin, most: f.cfg.Worker.RetryMax}
	for failures := 0; ; {
		err := f.try(living, r)
		if err == nil {
			f.commit.to(r.end)
			return nil
		}
		switch {
		case living.Err() != nil:
			return living.Err()
		case f.outage(living, err):
			failures = 0
		default:
			failures++
		}
		if failures >= sureOf && len(r.events) > 0 {
			return f.narrow(living, running, r, err)
		}
		f.logger.Warn("a batch failed and will be tried again", zap.Int("events", len(r.events)), zap.Error(err))
		if !sleep(running, pause.pause()) {
			return running.Err()
		}
	}
}

func (f *Following) outage(ctx context.Context, err error) bool {
	if fault.Is(err, fault.Unavailable) || retryable(err) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Worker.Timeout)
	defer cancel()
	return f.store.probe(ctx) != nil
}

// narrow does the events of a batch that fails every time one by one; the one
// that fails alone is passed over.
func (f *Following) narrow(living, running context.Context, r *run, cause error) error {
	if len(r.events) == 1 {
		f.logger.Error("an event was passed over", zap.String("event_uuid", r.events[0].UUID), zap.Int64("project_id", r.events[0].ProjectID), zap.Error(cause))
		f.worker.metrics.dead.WithLabelValues(f.reader).Inc()
		return f.process(living, running, &run{begin: r.begin, end: r.end})
	}
	begin := r.begin
	for i := range r.events {
		end := r.ends[i]
		if i == len(r.events)-1 {
			end = r.end
		}
		if err := f.process(living, running, &run{events: r.events[i : i+1], ends: r.ends[i : i+1], begin: begin, end: end}); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// try hands a batch over in one transaction with the cursor behind it. A panic
// of the follower is an error.
func (f *Following) try(ctx context.Context, r *run) (err error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Worker.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	keep := func(context.Context) error { return nil }
	if len(r.events) > 0 {
		batch := make([]*sdk.Event, len(r.events))
		for i := range r.events {
			ev := r.events[i]
			batch[i] = &ev
		}
		if keep, err = f.follower.Prepare(ctx, batch); err != nil {
			return fmt.Errorf("follower %s: %w", f.follower.Name(), err)
		}
	}
	return f.store.tx(ctx, func(ctx context.Context) error {
		if err := keep(ctx); err != nil {
			return fmt.Errorf("follower %s: %w", f.follower.Name(), err)
		}
		return f.store.saveCursor(ctx, f.reader, cursor{f.journalID, r.end})
	})
}
