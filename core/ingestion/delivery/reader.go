package delivery

import (
	"context"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// sinkReader is a reader of the journal for a sink: one for live events and,
// while there are any, one for imports. It reads, filters and encodes in a
// goroutine of its own and hands out chunks.
type sinkReader struct {
	name       string // of its cursor
	historical bool
	bound      *reader.UpperBound // up to which it reads; nil without one
	commit     *reader.Committer

	received        journal.Position // end of the last chunk that was received
	lastEvents      journal.Position // end of the last chunk that held events
	chunks          chan *chunk
	stopReading     context.CancelFunc
	stopCommit      context.CancelFunc
	expected        int               // events in the previous batch, to size the next one
	firstHistorical *journal.Position // before the first record for the other reader
}

// chunk is a section of the journal, filtered and split into batches.
type chunk struct {
	batches         []*batch
	filtered        int // events that the sink does not get
	begin, end      journal.Position
	firstHistorical *journal.Position // of a live reader: before the first import
}

// readLoop reads chunks from a position on and hands them out until ctx ends.
func (c *cursors) readLoop(ctx context.Context, r *sinkReader, from journal.Position) {
	log := c.log
	if r.bound != nil {
		log = &reader.Bounded{Log: log, Bound: r.bound}
	}
	var source *reader.Reader
	source = reader.New(log, c.limits, from, func(rec *event.Record) bool {
		if rec.Historical && !r.historical && r.firstHistorical == nil {
			r.firstHistorical = &journal.Position{Seq: source.Position().Seq}
		}
		return rec.Historical == r.historical
	})
	backoff := c.backoff()
	for ctx.Err() == nil {
		b, err := c.fillBatch(ctx, r, source)
		if err != nil {
			if ctx.Err() == nil {
				c.stats.SetFailed(status.Retrying, err)
				backoff.Sleep(ctx)
			}
			continue
		}
		backoff.Reset()
		c.reportUnreadable(r, b)
		if !c.keepDamaged(b) {
			return
		}
		f, env, ok := c.evaluate(ctx, b.Events)
		if !ok {
			return
		}
		select {
		case r.chunks <- c.newChunk(r, b, f, env):
		case <-ctx.Done():
		}
	}
}

// lanes is the number of batches that a full chunk is split into.
func (c *cursors) lanes() int {
	if c.sink.Properties().Ordering == sdk.OrderPerKey {
		return c.window.Within(c.maxInFlight())
	}
	return 1
}

// newChunk filters a batch of the journal and splits it into batches for the
// sink.
func (c *cursors) newChunk(r *sinkReader, b *reader.Batch, f *filter.Filter, env *match.Env) *chunk {
	out := &chunk{begin: b.Begin, end: b.End, firstHistorical: r.firstHistorical}
	r.firstHistorical = nil
	seqs, next := make([]uint64, 0, len(b.Events)), 0
	keepTo := func(end int) {
		for ; next < end; next++ {
			seqs = append(seqs, b.Record(next))
		}
	}
	read := len(b.Events)
	events := f.Apply(b.Events, env, func(i int, reason string) {
		keepTo(i)
		next = i + 1
		out.filtered++
		c.metrics.filtered.WithLabelValues(c.name(), reason).Inc()
	})
	c.stats.AddFiltered(out.filtered)
	keepTo(read)
	out.batches = splitBatches(f, events, seqs, c.batchSize(), c.ordering(), c.lanes())
	for _, s := range out.batches {
		s.origins = b.Origins
	}
	return out
}

// fillBatch waits for events and collects them until the chunk is full or its
// first event has waited for the linger time.
func (c *cursors) fillBatch(ctx context.Context, r *sinkReader, source *reader.Reader) (*reader.Batch, error) {
	size, lanes := c.batchSize(), c.lanes()
	size.events, size.bytes = size.events*lanes, size.bytes*lanes
	// The events belong to the sink's batches, so their memory is not reused. The
	// next batch is about as large as the one before.
	capacity := min(size.events, r.expected+16)
	b := &reader.Batch{Events: make([]sdk.Event, 0, capacity), Ends: make([]journal.Position, 0, capacity)}
	b.Reset(source.Position())
	defer func() { r.expected = len(b.Events) }()
	var linger context.Context
	for {
		full, err := source.Fill(ctx, b, size.events, size.bytes)
		if err != nil {
			// Events that were read before are kept: the position is behind them.
			if !b.Empty() {
				return b, nil
			}
			return nil, err
		}
		if full || (linger != nil && linger.Err() != nil) {
			return b, nil
		}
		if linger == nil && !b.Empty() {
			var cancel context.CancelFunc
			linger, cancel = context.WithTimeout(ctx, size.linger)
			defer cancel()
		}
		until := linger
		if until == nil {
			until = ctx
		}
		err = source.Wait(until)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil || until.Err() != nil:
		case b.Empty():
			return nil, err
		default:
			return b, nil
		}
	}
}

// reportUnreadable logs records that cannot be parsed. The pipeline keeps them as
// dead letters.
func (c *cursors) reportUnreadable(r *sinkReader, b *reader.Batch) {
	for i := range b.Unreadable {
		if !r.historical {
			c.logger.Error("journal record unreadable", zap.Uint64("seq", b.Unreadable[i].Record.Seq))
			c.stats.SetFailed(status.Delivering, b.Unreadable[i].Err)
		}
	}
}

// keepDamaged keeps the damaged ranges of a batch as dead letters of the sink,
// before the cursor can move over them; false when the delivery stops first. A
// range that is read again is the same dead letter.
func (c *cursors) keepDamaged(b *reader.Batch) bool {
	source := deadletter.SourceSink + c.name()
	for _, d := range b.Damaged {
		letter := deadletter.NewDamaged(source, c.journalID, d)
		keep := func() error { return c.deadLetters.Add(c.drainCtx, letter) }
		if !retry.Until(c.drainCtx, c.backoff(), keep, func(err error) { c.stats.SetFailed(status.Retrying, err) }) {
			return false
		}
		c.deadMetrics.CountAdded(source, 1)
		c.stats.AddDeadLetter()
		c.stats.SetFailed(status.Delivering, d)
	}
	reader.LogDamaged(c.logger, b)
	return true
}
