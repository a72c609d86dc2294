package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

// Follower receives live events, in order, after they have been stored. It
// receives no imports.
type Follower interface {
	// Name is for logs and names the cursor: one word.
	Name() string
	// Accepts reports whether the follower needs the events of a project now. It
	// is called for every record and must be quick; records of other projects are
	// skipped without being decoded.
	Accepts(projectID int64) bool
	// Prepare computes the outcome of events, which it may keep and change. It
	// returns a function that stores the outcome; it is called once, inside the
	// transaction of its ctx, which also writes the follower's cursor. Slow work
	// belongs into Prepare: on SQLite a transaction blocks all other writes. An
	// error keeps nothing; the batch is retried, later one event at a time, and
	// the event that fails every time is skipped and logged.
	Prepare(ctx context.Context, batch []*sdk.Event) (store func(ctx context.Context) error, err error)
}

// FollowerRunner reads the journal for a Follower, with a reader and a cursor of
// its own. It stays behind the worker. Neither the worker nor a sink waits for
// it.
type FollowerRunner struct {
	cfg         Config
	limits      event.Limits
	log         reader.Log
	db          *db.DB
	store       *store
	worker      *Worker
	deadMetrics *deadletter.Metrics
	follower    Follower
	name        string // of the reader
	logger      *zap.Logger

	journalID string
	reader    *reader.Reader
	commit    *reader.Committer
	cursor    *readerCursor
	service   retry.Service
}

// NewFollowerRunner returns a runner behind the worker that has not started.
func NewFollowerRunner(w *Worker, f Follower) *FollowerRunner {
	return &FollowerRunner{
		cfg: w.cfg, limits: w.limits, log: w.log, db: w.db, store: w.store, worker: w, deadMetrics: w.deadMetrics, follower: f,
		name: FollowerReader(f), logger: w.logger.With(zap.String("follower", f.Name())),
	}
}

// FollowerReader returns the name of the reader of a follower.
func FollowerReader(f Follower) string { return "follower/" + f.Name() }

// Start registers the follower at the journal and begins. A new follower begins
// with the events that are accepted from now on.
func (f *FollowerRunner) Start(ctx context.Context) error {
	at, err := f.log.Register(ctx, f.name, journal.End)
	if err != nil {
		return fmt.Errorf("register %s at the journal: %w", f.name, err)
	}
	stats, err := f.log.Stats(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the journal: %w", err)
	}
	f.journalID = stats.ID
	f.cursor = f.worker.newCursor(f.name)
	f.service.Start()
	f.service.Go(func(drainCtx, killCtx context.Context) {
		for again := true; again; {
			at, again = f.run(drainCtx, killCtx, at)
		}
	})
	return nil
}

// Stop finishes the batch at hand and waits for it. When ctx ends first, the
// batch is rolled back and processed after the next start.
func (f *FollowerRunner) Stop(ctx context.Context) error { return f.service.Stop(ctx) }

// run follows until drainCtx ends or the lease of the worker has ended. It returns
// true if it must begin again with the cursor that the database has now, and where
// the follower is.
func (f *FollowerRunner) run(drainCtx, killCtx context.Context, registered journal.Position) (reached journal.Position, again bool) {
	at, ok := f.findStart(drainCtx, registered)
	if !ok {
		return at, false
	}
	f.commit = f.worker.newCommitter(f.name, registered, f.logger)
	f.reader = reader.New(f.log, f.limits, at, func(rec *event.Record) bool { return !rec.Historical && f.follower.Accepts(rec.ProjectID) })
	var committing sync.WaitGroup
	commitCtx, stopCommitting := context.WithCancel(drainCtx)
	defer stopCommitting()
	committing.Go(func() { f.commit.Run(commitCtx) })
	backoff := f.backoff()
	b := new(reader.Batch)
	var err error
	for err == nil && f.fillBatch(drainCtx, b, &backoff) && f.waitForWorker(drainCtx, b.End) {
		if err = f.process(killCtx, drainCtx, b); err == nil {
			at = b.End
		}
	}
	stopCommitting()
	committing.Wait()
	if isFenced(err) {
		return at, f.worker.waitFenced(drainCtx, f.logger, err)
	}
	if killCtx.Err() != nil {
		f.logger.Info("batch at hand given up at stop; the next start processes it")
	} else if err := f.commit.Flush(killCtx); err != nil {
		f.logger.Warn("cursor commit failed at stop; the cursor in the database is current", zap.Error(err))
	}
	return at, false
}

func (f *FollowerRunner) backoff() retry.Backoff {
	return retry.Backoff{Min: f.cfg.RetryMin, Max: f.cfg.RetryMax}
}

// findStart returns the position to start from. It waits for the database. The
// cursor in the database is the truth, unless it is of another journal. The result is
// false when ctx ends, and when the lease of the worker has ended.
func (f *FollowerRunner) findStart(ctx context.Context, registered journal.Position) (at journal.Position, ok bool) {
	at = registered
	fenced := false
	ok = retry.Until(ctx, f.backoff(), func() error {
		c, found, err := f.cursor.open(ctx)
		if fenced = isFenced(err); fenced {
			f.worker.stopFenced(f.logger, err)
			return nil
		}
		if err == nil && found && c.journal == f.journalID && registered.Before(c.position) {
			at = c.position
		}
		return err
	}, func(err error) { f.logger.Warn("waiting for the database", zap.Error(err)) })
	return at, ok && !fenced
}

// maxFollowerEvents bounds a batch for a follower.
const maxFollowerEvents = 1000

// fillBatch waits until the journal has events for the follower, or the cursor
// must move over others; false when ctx ends.
func (f *FollowerRunner) fillBatch(ctx context.Context, b *reader.Batch, backoff *retry.Backoff) bool {
	b.Reset(f.reader.Position())
	b.Events = nil // the follower may keep those of the batch before
	return f.reader.FillBatch(ctx, b, reader.FillOptions{
		MaxEvents: maxFollowerEvents, MaxBytes: f.cfg.MaxBytes, Idle: f.isIdle, SkipDelay: f.worker.skipDelay(),
		Backoff: backoff, Log: f.logger,
	})
}

// isIdle reports whether b has no event. Then the records up to its end are no backlog,
// although the cursor moves over them later.
func (f *FollowerRunner) isIdle(b *reader.Batch) bool {
	if len(b.Events) > 0 {
		return false
	}
	if !b.Empty() {
		f.worker.reportSkipped(f.name, b.End.Seq)
	}
	return true
}

// waitForWorker waits until the worker has nothing left to process before p; false when ctx ends.
func (f *FollowerRunner) waitForWorker(ctx context.Context, p journal.Position) bool {
	for pause := time.Millisecond; f.worker.live.reached().Before(p); pause = min(2*pause, 100*time.Millisecond) {
		if !retry.Sleep(ctx, pause) {
			return false
		}
	}
	return true
}

// process retries a batch until the follower has stored its outcome. It fails
// only when the runner stops.
func (f *FollowerRunner) process(killCtx, drainCtx context.Context, b *reader.Batch) error {
	backoff := f.backoff()
	for failures := 0; ; {
		err := f.processOnce(killCtx, b)
		if err == nil {
			f.commit.MoveTo(b.End)
			reader.LogDamaged(f.logger, b)
			return nil
		}
		switch {
		case killCtx.Err() != nil:
			return killCtx.Err()
		case isFenced(err):
			return f.resolveFenced(killCtx, b, err)
		case f.store.isOutage(killCtx, err, f.cfg.Timeout):
			failures = 0
		default:
			failures++
		}
		if failures >= failuresBeforeBisect && len(b.Events) > 0 {
			return f.processEach(killCtx, drainCtx, b, err)
		}
		f.logger.Warn("batch failed; retrying", zap.Int("events", len(b.Events)), zap.Error(err))
		if !backoff.Sleep(drainCtx) {
			return drainCtx.Err()
		}
	}
}

// resolveFenced returns nil if an earlier attempt has committed b although its commit
// failed, else err.
func (f *FollowerRunner) resolveFenced(ctx context.Context, b *reader.Batch, err error) error {
	if done, openErr := f.cursor.isCommitted(ctx, cursorAt(f.journalID, b.End)); openErr != nil || !done {
		return err
	}
	f.commit.MoveTo(b.End)
	return nil
}

// processEach processes the events of a batch that fails every time one by one.
// An event that fails alone is skipped.
func (f *FollowerRunner) processEach(killCtx, drainCtx context.Context, b *reader.Batch, cause error) error {
	if len(b.Events) == 1 {
		f.logger.Error("event skipped by follower", zap.String("event_uuid", b.Events[0].UUID), zap.Int64("project_id", b.Events[0].ProjectID), zap.Error(cause))
		f.deadMetrics.CountAdded(f.name, 1)
		return f.process(killCtx, drainCtx, &reader.Batch{Begin: b.Begin, End: b.End})
	}
	begin := b.Begin
	for i := range b.Events {
		end := b.Ends[i]
		if i == len(b.Events)-1 {
			end = b.End
		}
		one := &reader.Batch{Events: b.Events[i : i+1], Ends: b.Ends[i : i+1], Begin: begin, End: end, Origins: b.Origins}
		if err := f.process(killCtx, drainCtx, one); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// errErasedMeanwhile is the error of a batch of which a person was erased while
// the follower prepared it. The next attempt leaves the person out.
var errErasedMeanwhile = fault.New(fault.Unavailable, "erased_meanwhile", "A person of the batch was erased meanwhile.")

// isKept reports whether the event at i concerns no erased person: a follower
// gets neither the events nor what is left of the person.
func isKept(known Erased, b *reader.Batch, i int) bool {
	ev := &b.Events[i]
	return known.Verdict(ev.ProjectID, ev.DistinctID, b.Record(i)) == erasure.Keep
}

func countKept(known Erased, b *reader.Batch) (n int) {
	for i := range b.Events {
		if known == nil || isKept(known, b, i) {
			n++
		}
	}
	return n
}

// copyEvents returns copies of the events of b, without those of erased persons.
func (f *FollowerRunner) copyEvents(ctx context.Context, b *reader.Batch) ([]*sdk.Event, error) {
	if f.worker.erased != nil {
		defer f.worker.erased.Begin()()
	}
	known, err := loadErased(ctx, f.worker.erased, b.Begin.Seq)
	if err != nil {
		return nil, err
	}
	batch := make([]*sdk.Event, 0, len(b.Events))
	for i := range b.Events {
		if known != nil && !isKept(known, b, i) {
			continue
		}
		ev := b.Events[i]
		batch = append(batch, &ev)
	}
	return batch, nil
}

// originsByUUID returns the spans of the requests of events; nil without traced ones.
func originsByUUID(b *reader.Batch) map[string]tracing.Origin {
	if len(b.Origins) == 0 {
		return nil
	}
	spans := make(map[uint64]tracing.Origin, len(b.Origins))
	for _, o := range b.Origins {
		spans[o.Seq] = o.Span
	}
	out := make(map[string]tracing.Origin, len(spans))
	for i := range b.Events {
		if span, ok := spans[b.Record(i)]; ok {
			out[b.Events[i].UUID] = span
		}
	}
	return out
}

// processOnce hands a batch to the follower and stores the outcome in one
// transaction with the cursor behind it. A panic of the follower becomes an
// error.
func (f *FollowerRunner) processOnce(ctx context.Context, b *reader.Batch) (err error) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	defer recoverAsError(&err)
	storeOutcome := func(context.Context) error { return nil }
	batch, err := f.copyEvents(ctx, b)
	if err != nil {
		return err
	}
	ctx, span := f.worker.startSpan(ctx, "follow events", b)
	defer func() { span.End(err) }()
	span.Text("guidon.follower", f.follower.Name())
	if len(batch) > 0 {
		ctx := tracing.WithOrigins(ctx, originsByUUID(b))
		if storeOutcome, err = f.follower.Prepare(ctx, batch); err != nil {
			return fmt.Errorf("follower %s: %w", f.follower.Name(), err)
		}
	}
	if f.worker.erased != nil {
		defer f.worker.erased.Begin()()
	}
	err = f.db.Tx(ctx, func(ctx context.Context) error {
		known, err := loadErased(ctx, f.worker.erased, b.Begin.Seq)
		if err != nil {
			return err
		}
		if countKept(known, b) != len(batch) {
			return errErasedMeanwhile
		}
		if err := storeOutcome(ctx); err != nil {
			return fmt.Errorf("follower %s: %w", f.follower.Name(), err)
		}
		return f.cursor.save(ctx, cursorAt(f.journalID, b.End))
	})
	if err == nil {
		f.cursor.committed(cursorAt(f.journalID, b.End))
	}
	return err
}
