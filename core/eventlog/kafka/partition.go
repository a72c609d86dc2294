package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/eventlog/chunks"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/journal"
)

// partition is what this node has of a partition in memory.
type partition struct {
	l      *Log
	number int32
	token  atomic.Int64 // the highest of all owners in this process

	expiring atomic.Bool // appends are refused: the retention of the topic is near unread records

	opening sync.Mutex // held while the tail is opened

	mu       sync.Mutex
	open     bool // the fetch loop fetches the partition
	waiters  int
	used     time.Time       // when the last Read or Wait began
	start    uint64          // records through this one are deleted
	end      uint64          // the newest record known
	tail     chunks.Chunk    // the newest records, while open
	ahead    []*chunks.Chunk // of direct fetches
	wake     chan struct{}
	counted  int64 // records that were fetched, for the mean size
	weighed  int64 // their bytes
	reported uint64
	oldest   map[uint64]time.Time // when the record after a position was appended
}

func newPartition(l *Log, number int32) *partition {
	return &partition{l: l, number: number, wake: make(chan struct{})}
}

func (p *partition) raiseToken(token int64) {
	for {
		old := p.token.Load()
		if token <= old {
			return
		}
		if p.token.CompareAndSwap(old, token) {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broadcast() // waiters with a lower token end
}

// broadcast wakes all who wait. p.mu is held.
func (p *partition) broadcast() {
	close(p.wake)
	p.wake = make(chan struct{})
}

// owned is a partition under the lease with a token.
type owned struct {
	p     *partition // nil for a number that the log does not have
	token int64
}

var _ eventlog.Partition = owned{}

// check returns why the partition cannot be used, or nil. Token 0 reads without a lease.
func (o owned) check(ctx context.Context) error {
	switch {
	case o.p == nil:
		return logstate.ErrNoPartition
	case ctx.Err() != nil:
		return ctx.Err()
	case o.p.l.closed.Load():
		return logstate.ErrClosing
	case o.p.l.taken.Load():
		return errTaken
	case o.token != 0 && o.token < o.p.token.Load():
		return logstate.ErrToken
	}
	return nil
}

// Read implements eventlog.Partition.
func (o owned) Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	if err := o.p.openTail(ctx); err != nil {
		return nil, err
	}
	for {
		records, found := o.p.cached(after, maxRecords, maxBytes)
		if found {
			return records, nil
		}
		next, err := o.p.skipDeleted(ctx, after)
		if err != nil {
			return nil, err
		}
		if next > after {
			after = next
			continue
		}
		if err := o.p.fetchDirect(ctx, after, maxBytes); err != nil {
			return nil, err
		}
	}
}

// cached returns the records after a position from memory. It reports false if they have
// to be fetched.
func (p *partition) cached(after uint64, maxRecords, maxBytes int) ([]journal.Record, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	for {
		if after >= p.end && after >= p.tail.Last {
			return nil, true
		}
		c := p.covering(after)
		if c == nil {
			return nil, after >= p.tail.After && p.open
		}
		if records := c.From(after); len(records) > 0 {
			return chunks.Select(records, maxRecords, maxBytes), true
		}
		after = c.Last
	}
}

// covering returns the chunk with the record after a position, or nil. p.mu is held.
func (p *partition) covering(after uint64) *chunks.Chunk {
	if p.open && p.tail.Covers(after) {
		return &p.tail
	}
	for _, c := range p.ahead {
		if c.Covers(after) {
			return c
		}
	}
	return nil
}

// skipDeleted returns the position after the records that have been deleted, if after is
// before it. It fails with a *journal.DamagedError if a registered reader has not read
// them.
func (p *partition) skipDeleted(ctx context.Context, after uint64) (uint64, error) {
	p.mu.Lock()
	start := p.start
	p.mu.Unlock()
	if after >= start {
		return after, nil
	}
	all, err := p.l.cursors.List(ctx, p.l.id)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		if c.Partition == int(p.number) && c.Position.Seq <= after {
			return 0, p.lost(after+1, start)
		}
	}
	return start, nil
}

// lost reports a range that was deleted before a reader has read it.
func (p *partition) lost(first, last uint64) error {
	p.mu.Lock()
	known := p.reported >= last
	p.reported = max(p.reported, last)
	p.mu.Unlock()
	if !known {
		p.l.metrics.Lost(int(p.number), last-first+1)
		p.l.log.Error("log records deleted before they were read", zap.Int32("partition", p.number),
			zap.Uint64("first", first), zap.Uint64("last", last))
	}
	return fmt.Errorf("partition %d: %w: %w", p.number, errDeleted, &journal.DamagedError{First: first, Last: last})
}

var errDeleted = errors.New("the retention of the topic has deleted records that were not read")

// Wait implements eventlog.Partition.
func (o owned) Wait(ctx context.Context, after uint64) error {
	for {
		if err := o.check(ctx); err != nil {
			return err
		}
		if err := o.p.openTail(ctx); err != nil {
			return err
		}
		wake, ready := o.p.await(after)
		if ready {
			return nil
		}
		var err error
		select {
		case <-wake:
		case <-ctx.Done():
			err = ctx.Err()
		case <-o.p.l.ctx.Done():
			err = logstate.ErrClosing
		}
		o.p.awaited()
		if err != nil {
			return err
		}
	}
}

// await reports whether there may be a record after a position. If not, it returns a
// channel that is closed when that changes; the caller calls awaited afterwards.
func (p *partition) await(after uint64) (<-chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	for c := p.covering(after); c != nil; c = p.covering(after) {
		if len(c.From(after)) > 0 {
			return nil, true
		}
		after = c.Last
	}
	if p.open && after < p.tail.After && after < p.end {
		return nil, true // to be fetched
	}
	p.waiters++
	return p.wake, false
}

func (p *partition) awaited() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters--
	p.used = time.Now()
}

// Register implements eventlog.Partition. Begin is the oldest record that is kept.
func (o owned) Register(ctx context.Context, reader string, from journal.Start) (journal.Position, error) {
	if err := o.check(ctx); err != nil {
		return journal.Position{}, err
	}
	return o.cursors().Register(ctx, reader, from)
}

// Commit implements eventlog.Partition. It joins the transaction in ctx.
func (o owned) Commit(ctx context.Context, reader string, at journal.Position) error {
	if err := o.check(ctx); err != nil {
		return err
	}
	return o.cursors().Commit(ctx, reader, at)
}

// Skipped excludes the records through a number from the lag of a reader that has nothing
// to do in them, on this node.
func (o owned) Skipped(reader string, through uint64) {
	if o.p != nil {
		o.cursors().Skipped(reader, through)
	}
}

// Unregister implements eventlog.Partition.
func (o owned) Unregister(ctx context.Context, reader string) error {
	if err := o.check(ctx); err != nil {
		return err
	}
	return o.cursors().Unregister(ctx, reader)
}

func (o owned) cursors() cursors.Owner {
	return cursors.Owner{Store: o.p.l.cursors, Log: o.p.l.id, Partition: int(o.p.number), Token: o.token, Bounds: o.p}
}

// Register implements eventlog.Log.
func (l *Log) Register(ctx context.Context, reader string, from journal.Start) error {
	return cursors.RegisterAll(ctx, l.cursors, l.id, reader, l.partitions, from)
}

// Refresh implements cursors.Bounds.
func (p *partition) Refresh(ctx context.Context) error { return p.l.refreshOffsets(ctx) }

// Bounds implements cursors.Bounds.
func (p *partition) Bounds() (before, newest uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start, p.end
}

// id names the log and the partition.
func (p *partition) id() string { return fmt.Sprintf("%s/%d", p.l.id, p.number) }

// aheadBytes and aheadChunks bound what direct fetches keep of a partition, for the reads
// that follow.
const (
	aheadBytes  = 8 << 20
	aheadChunks = 8
)
