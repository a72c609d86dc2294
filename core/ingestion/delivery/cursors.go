package delivery

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// cursors holds the readers of a sink and their cursors in the journal: that of
// live events for good, and that of imports while there are any. A large import
// so does not delay live events.
type cursors struct {
	*target
	log         reader.Log
	window      *window.Window
	deadLetters *deadletter.Store
	journalID   string

	live       *sinkReader
	historical *sinkReader // nil without an import

	drainCtx   context.Context
	sessionCtx context.Context
	reading    sync.WaitGroup // the read loops of the session
	committing sync.WaitGroup
}

// register finds the cursors of the sink; false when the delivery stops first.
func (c *cursors) register() bool {
	name := deadletter.SourceSink + c.name()
	var live, historical journal.Position
	var importing bool
	ok := c.retryUntilDone(func() (err error) {
		if live, err = c.log.Register(c.drainCtx, name, c.cfg.start()); err != nil {
			return err
		}
		stats, err := c.log.Stats(c.drainCtx)
		if err != nil {
			return err
		}
		c.journalID = stats.ID
		historical, importing, err = c.findHistorical(status.HistoricalPrefix + name)
		return err
	})
	if !ok {
		return false
	}
	c.live = &sinkReader{name: name, chunks: make(chan *chunk)}
	c.startCommitter(c.live, live)
	if importing {
		c.historical = &sinkReader{name: status.HistoricalPrefix + name, historical: true, chunks: make(chan *chunk)}
		c.startCommitter(c.historical, historical)
	}
	return true
}

// retryUntilDone calls fn until it succeeds; false when the delivery stops first.
func (c *cursors) retryUntilDone(fn func() error) bool {
	return retry.Until(c.drainCtx, c.backoff(), fn, func(err error) { c.stats.SetFailed(status.Starting, err) })
}

// findHistorical looks for the cursor of an import that has not ended. A cursor
// that was not moved before the server was killed has nothing to deliver.
func (c *cursors) findHistorical(name string) (at journal.Position, found bool, err error) {
	stats, err := c.log.Stats(c.drainCtx)
	if err != nil {
		return at, false, err
	}
	i := slices.IndexFunc(stats.Readers, func(r journal.ReaderStats) bool { return r.Name == name })
	if i < 0 {
		return at, false, nil
	}
	if stats.Readers[i].Position.Count == 0 {
		return at, false, c.log.Unregister(c.drainCtx, name)
	}
	return stats.Readers[i].Position, true, nil
}

// startCommitter commits the cursor of a reader in the background.
func (c *cursors) startCommitter(r *sinkReader, at journal.Position) {
	r.commit, r.received = reader.NewCommitter(c.log, r.name, at, c.logger), at
	if c.lease != nil {
		r.commit.Pause(reader.LeasedCommitInterval)
	}
	ctx, stop := context.WithCancel(c.drainCtx)
	r.stopCommit = stop
	c.committing.Go(func() { r.commit.Run(ctx) })
}

// startReader starts to read from the cursor on.
func (c *cursors) startReader(r *sinkReader) {
	at := r.commit.Position()
	r.received, r.firstHistorical, r.chunks = at, nil, make(chan *chunk)
	ctx, stop := context.WithCancel(c.sessionCtx)
	r.stopReading = stop
	c.reading.Go(func() { c.readLoop(ctx, r, at) })
}

// startSession starts to read from the cursors on, until ctx ends. It returns the
// last sequence number that was given before.
func (c *cursors) startSession(ctx context.Context) (lastSeq uint64) {
	c.sessionCtx = ctx
	at := c.live.commit.Position()
	lastSeq = at.Count
	if c.historical != nil {
		lastSeq = max(lastSeq, c.historical.commit.Position().Count)
		c.historical.bound = reader.NewUpperBound(at.Seq)
		c.startReader(c.historical)
	}
	return lastSeq
}

// openHistorical starts to deliver an import, which the live reader skips from
// that position on. It is registered in the journal before the live cursor moves
// on. It returns the last sequence number given; false when the delivery stops
// first.
func (c *cursors) openHistorical(from journal.Position, lastSeq uint64) (uint64, bool) {
	r := &sinkReader{name: status.HistoricalPrefix + c.live.name, historical: true, bound: reader.NewUpperBound(from.Seq)}
	from.Count = max(lastSeq, 1) // marks the cursor as in use
	ok := c.retryUntilDone(func() error {
		at, err := c.log.Register(c.drainCtx, r.name, journal.Begin)
		if err != nil {
			return err
		}
		from.Seq = max(from.Seq, at.Seq)
		return c.log.Commit(c.drainCtx, r.name, from)
	})
	if !ok {
		return lastSeq, false
	}
	c.startCommitter(r, from)
	c.historical = r
	c.startReader(r)
	return max(lastSeq, from.Count), true
}

// closeHistorical ends the reader of imports when it has caught up with the live
// one, and the live cursor alone holds the sequence numbers. pending reports
// whether batches of it are not settled.
func (c *cursors) closeHistorical(pending func(*sinkReader) bool) {
	r := c.historical
	if r == nil || r.received.Before(journal.Position{Seq: c.live.received.Seq}) || pending(r) {
		return
	}
	if c.live.commit.Position().Count < r.commit.Position().Count {
		return
	}
	committed, err := c.log.Register(c.drainCtx, c.live.name, journal.End)
	if err != nil || committed.Count < r.commit.Position().Count || committed.Seq < r.lastEvents.Seq {
		return // tried again later
	}
	r.stopReading()
	r.stopCommit()
	if err := c.log.Unregister(c.drainCtx, r.name); err != nil {
		c.logger.Warn("cursor of an import not removed; retrying after a restart", zap.Error(err))
	}
	c.historical = nil
}

// onReceived records that a chunk was received from a reader.
func (c *cursors) onReceived(r *sinkReader, ch *chunk) {
	r.received = ch.end
	if len(ch.batches) > 0 || ch.filtered > 0 {
		r.lastEvents = ch.end
	}
	if r == c.live && c.historical != nil {
		c.historical.bound.Raise(ch.end.Seq)
	}
}

// flush commits the cursors for the last time.
func (c *cursors) flush(ctx context.Context) {
	c.committing.Wait()
	for _, r := range []*sinkReader{c.historical, c.live} {
		if r == nil {
			continue
		}
		if err := r.commit.Flush(ctx); err != nil {
			c.logger.Warn("cursor commit failed at stop; some events will be sent again", zap.Error(err))
		}
	}
}
