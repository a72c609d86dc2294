package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// lane is one of the worker's readers: it reads batches and processes them.
type lane struct {
	*Worker
	name       string // of the reader
	historical bool
	logger     *zap.Logger
	registered journal.Position // at the journal

	reader   *reader.Reader
	commit   *reader.Committer
	cursor   *readerCursor
	begun    time.Time     // when the last batch was filled
	work     []sdk.Event   // copies of events, for the stages to change
	place    []int         // of the copies in their batch
	poisoned int           // consecutive events that became dead letters
	filled   atomic.Uint64 // events read; those beyond the status wait to be processed
	status   atomic.Pointer[Status]
	lag      *lagMonitor

	skipped atomic.Pointer[section] // the newest records without work
}

// section is a part of the journal.
type section struct{ begin, end journal.Position }

func newLane(w *Worker, name string, historical bool) *lane {
	logger := w.logger.With(zap.String("reader", name))
	l := &lane{Worker: w, name: name, historical: historical, logger: logger, lag: &lagMonitor{reader: name, logger: logger}}
	l.status.Store(&Status{})
	return l
}

func (l *lane) currentStatus() Status {
	s := *l.status.Load()
	s.Read = l.filled.Load()
	return s
}

func (l *lane) setPosition(p journal.Position) { l.status.Store(&Status{Position: p}) }

func (l *lane) setWaiting(err error) {
	s := *l.status.Load()
	if s.Waiting == nil {
		s.Since = time.Now()
	}
	s.Waiting = err
	l.status.Store(&s)
}

func (l *lane) backoff() retry.Backoff {
	return retry.Backoff{Min: l.cfg.RetryMin, Max: l.cfg.RetryMax}
}

// run processes until drainCtx ends or the lease of the worker has ended. The end of
// killCtx gives up the batch at hand.
func (l *lane) run(drainCtx, killCtx context.Context) {
	l.cursor = l.newCursor(l.name)
	for l.runFromCursor(drainCtx, killCtx) {
		l.registered = l.status.Load().Position
	}
}

// runFromCursor processes from the cursor in the database on. It returns true if it
// must begin again with the cursor that the database has now.
func (l *lane) runFromCursor(drainCtx, killCtx context.Context) (again bool) {
	at, ok := l.findStart(drainCtx, l.registered)
	if !ok || !l.recoverErasures(drainCtx, at.Seq) {
		return false
	}
	l.reader = reader.New(l.log, l.limits, at, func(rec *event.Record) bool { return rec.Historical == l.historical })
	l.commit = l.newCommitter(l.name, l.registered, l.logger)
	l.setPosition(at)
	var committing sync.WaitGroup
	commitCtx, stopCommitting := context.WithCancel(drainCtx)
	defer stopCommitting()
	committing.Go(func() { l.commit.Run(commitCtx) })
	committing.Go(func() { l.scanAhead(commitCtx) })
	l.commit.MoveTo(at)
	err := l.processBatches(drainCtx, killCtx)
	stopCommitting()
	committing.Wait()
	if isFenced(err) {
		l.setWaiting(err)
		return l.waitFenced(drainCtx, l.logger, err)
	}
	if killCtx.Err() != nil {
		l.logger.Info("batch at hand given up at stop; the next start processes it")
	} else if err := l.commit.Flush(killCtx); err != nil {
		l.logger.Warn("cursor commit failed at stop; the cursor in the database is current", zap.Error(err))
	}
	return false
}

// recoverErasures waits until the erasures behind the live lane's start are
// carried out. The database knows those before it: each was in the database
// before its record was in the journal.
func (l *lane) recoverErasures(ctx context.Context, after uint64) bool {
	if l.erased == nil {
		return true
	}
	if l.historical {
		select {
		case <-l.recovered:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if s, ok := l.erased.(scanner); ok {
		s.FollowCursor(liveCursor{l})
	}
	ok := l.erased.Recover(ctx, after)
	if ok {
		l.recoverOnce.Do(func() { close(l.recovered) })
	}
	return ok
}

// findStart returns the position to start from. It waits for the database. The
// result is false when ctx ends, and when the lease of the worker has ended.
func (l *lane) findStart(ctx context.Context, registered journal.Position) (at journal.Position, ok bool) {
	backoff := l.backoff()
	for {
		c, found, err := l.cursor.open(ctx)
		if err == nil && found {
			err = l.compareJournal(ctx, c)
		}
		switch {
		case isFenced(err):
			l.setWaiting(err)
			l.stopFenced(l.logger, err)
			return at, false
		case err != nil:
			l.setWaiting(err)
			l.logger.Warn("waiting for the database and the journal", zap.Error(err))
			if !backoff.Sleep(ctx) {
				return at, false
			}
		case !found:
			return journal.Position{Count: registered.Count}, true
		case c.journal != l.journalID:
			l.logger.Warn("journal differs from the one of the database cursor: reading it from its beginning",
				zap.String("was", c.journal), zap.String("is", l.journalID))
			return registered, true
		case c.position.Before(registered):
			l.logger.Warn("database cursor is behind the journal's: events that the journal still keeps are processed again",
				zap.Uint64("database", c.position.Seq), zap.Uint64("journal", registered.Seq))
			return journal.Position{Seq: c.position.Seq, Index: c.position.Index, Count: registered.Count}, true
		default:
			return c.position, true
		}
	}
}

// compareJournal lets the journal compare itself with the cursor of the database: a
// journal that was replaced lacks events that were acknowledged.
func (l *lane) compareJournal(ctx context.Context, c cursor) error {
	k, ok := l.log.(journal.Comparer)
	if !ok || c.journal != l.journalID && l.historical {
		return nil
	}
	return k.Compare(ctx, c.journal, c.position.Seq)
}

// processBatches processes until drainCtx ends, or a batch fails for good. While a
// batch is in the database, the next one is read and decoded.
func (l *lane) processBatches(drainCtx, killCtx context.Context) (err error) {
	ready := make(chan *reader.Batch)
	spare := make(chan *reader.Batch, 2)
	spare <- new(reader.Batch)
	spare <- new(reader.Batch)
	readCtx, stopReading := context.WithCancel(drainCtx)
	defer stopReading()
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(ready)
		l.readBatches(readCtx, ready, spare)
	})
	for b := range ready {
		if l.historical && !b.Idle() {
			l.yieldToLive(drainCtx)
		}
		if err = l.process(killCtx, drainCtx, b, l.newAttempts()); err != nil {
			break
		}
		spare <- b
	}
	stopReading()
	reading.Wait()
	return err
}

// readBatches fills batches until ctx ends.
func (l *lane) readBatches(ctx context.Context, ready chan<- *reader.Batch, spare <-chan *reader.Batch) {
	backoff := l.backoff()
	for {
		var b *reader.Batch
		select {
		case b = <-spare:
		case <-ctx.Done():
			return
		}
		if !l.fillBatch(ctx, b, &backoff) || !l.handOver(ctx, ready, b) {
			return
		}
	}
}

// growInterval is how often a batch that waits for the transaction before it takes what
// has come meanwhile.
const growInterval = 20 * time.Millisecond

// handOver gives b to processBatches; false when ctx ends. The longer that is busy, the
// more events b gets, up to the limits of a batch: a database that is slow, or whose rows
// others have locked, gets fewer and larger transactions.
func (l *lane) handOver(ctx context.Context, ready chan<- *reader.Batch, b *reader.Batch) bool {
	grow := time.NewTicker(growInterval)
	defer grow.Stop()
	for {
		select {
		case ready <- b:
			return true
		case <-ctx.Done():
			return false
		case <-grow.C:
			if l.status.Load().Waiting != nil { // the database is away
				continue
			}
			full, err := l.reader.Fill(ctx, b, l.maxEvents(), l.cfg.MaxBytes)
			if l.filled.Store(b.End.Count); full || err != nil { // the next batch meets the error
				grow.Stop()
			}
		}
	}
}

// maxHistoricalEvents bounds a batch of an import: while it is in the database,
// the live lane waits.
const maxHistoricalEvents = 1000

func (l *lane) maxEvents() int {
	if l.historical {
		return min(l.cfg.MaxEvents, maxHistoricalEvents)
	}
	return l.cfg.MaxEvents
}

// fillBatch waits until there are events to process and puts them into b.
func (l *lane) fillBatch(ctx context.Context, b *reader.Batch, backoff *retry.Backoff) bool {
	b.Reset(l.reader.Position())
	ok := l.reader.FillBatch(ctx, b, reader.FillOptions{
		MaxEvents: l.maxEvents(), MaxBytes: l.cfg.MaxBytes, Backoff: backoff, Log: l.logger,
		More: func() bool { return l.linger(ctx) }, Idle: l.isIdle, SkipDelay: l.skipDelay(),
	})
	l.begun = time.Now()
	l.filled.Store(b.End.Count)
	return ok
}

// skipper is a journal whose lag leaves out records without work for a reader.
type skipper interface {
	Skipped(reader string, through uint64)
}

// isIdle reports whether b holds nothing to process. Then the records up to its end
// are no backlog, although the cursor moves over them later.
func (l *lane) isIdle(b *reader.Batch) bool {
	if !b.Idle() {
		return false
	}
	if !b.Empty() {
		l.skipped.Store(&section{b.Begin, b.End})
		l.reportSkipped(l.name, b.End.Seq)
	}
	return true
}

// reached returns the position before which there is nothing left to process. It is ahead
// of the cursor by records without work.
func (l *lane) reached() journal.Position {
	at := l.status.Load().Position
	if s := l.skipped.Load(); s != nil && !at.Before(s.begin) && at.Before(s.end) {
		at.Seq, at.Index = s.end.Seq, s.end.Index
	}
	return at
}

// reportSkipped tells the log that a reader has no work in the records through a number.
func (w *Worker) reportSkipped(reader string, through uint64) {
	if s, ok := w.log.(skipper); ok {
		s.Skipped(reader, through)
	}
}

// maxSkipDelay bounds the skip delay beside other workers. After a crash records of this
// time are skipped again.
const maxSkipDelay = 10 * time.Second

// skipDelay returns after how long the cursor of a reader moves over records without work,
// which costs a transaction.
func (w *Worker) skipDelay() time.Duration {
	return reader.ScalePause(reader.SkipDelay, w.active.Load(), maxSkipDelay)
}

// maxSharedLinger bounds the linger of a worker beside others.
const maxSharedLinger = 250 * time.Millisecond

// linger waits until Linger has passed since the last batch was filled. It reports
// whether it has waited, so that more events may have come. Beside the workers of other
// partitions it waits for as many times Linger, at most maxSharedLinger: together they
// begin about as many transactions as one worker would.
func (l *lane) linger(ctx context.Context) bool {
	wait := reader.ScalePause(l.cfg.Linger, l.active.Load(), maxSharedLinger) - time.Since(l.begun)
	return wait > 0 && retry.Sleep(ctx, wait)
}

// maxYield bounds how long a batch of an import waits for the live lane.
const maxYield = 5 * time.Second

// busy reports whether events that were read wait to be processed.
func (l *lane) busy() bool { return l.filled.Load() > l.status.Load().Position.Count }

// yieldToLive waits until the live lane is idle, at most maxYield.
func (l *lane) yieldToLive(ctx context.Context) {
	for deadline := time.Now().Add(maxYield); l.live.busy() && time.Now().Before(deadline); {
		if !retry.Sleep(ctx, 5*time.Millisecond) {
			return
		}
	}
}
