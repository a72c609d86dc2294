package pglog

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
	number int
	token  atomic.Int64 // the highest of all owners in this process

	fetching sync.Mutex // held while rows are read

	mu      sync.Mutex
	waiters int
	used    time.Time       // when the last Read or Wait began
	trimmed uint64          // records through this one are deleted
	end     uint64          // the newest record known
	chunks  []*chunks.Chunk // records that were read
	wake    chan struct{}
	counted int64 // records that were read, for the mean size
	weighed int64 // their bytes
}

func newPartition(l *Log, number int) *partition {
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

// advance records that the partition has records through last.
func (p *partition) advance(last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last > p.end {
		p.end = last
		p.broadcast()
	}
}

// goBack records that the newest record is an earlier one than known: the database has lost
// commits, as after a failover to a server that was behind.
func (p *partition) goBack(end uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.l.log.Error("log has lost its newest records", zap.Int("partition", p.number), zap.Uint64("known", p.end), zap.Uint64("last", end))
	p.end, p.chunks = end, nil
}

// trim records that the records through last are deleted.
func (p *partition) trim(last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trimmed = max(p.trimmed, last)
}

func (p *partition) isRead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters > 0 || time.Since(p.used) < idleAfter
}

// Bounds implements cursors.Bounds.
func (p *partition) Bounds() (before, newest uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trimmed, p.end
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
	for {
		records, found := o.p.cached(&after, maxRecords, maxBytes)
		if found {
			return records, nil
		}
		if err := o.p.fetch(ctx, after, maxBytes); err != nil {
			return nil, err
		}
	}
}

// cached returns the records after a position from memory. It reports false if they have
// to be read. It moves the position over deleted records.
func (p *partition) cached(after *uint64, maxRecords, maxBytes int) ([]journal.Record, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	*after = max(*after, p.trimmed)
	if *after >= p.end {
		return nil, true
	}
	for _, c := range p.chunks {
		if c.Covers(*after) {
			return chunks.Select(c.From(*after), maxRecords, maxBytes), true
		}
	}
	return nil, false
}

// fetchBytes is the least that is read at once.
const fetchBytes = 1 << 20

// fetch reads the rows after a position into memory, unless another goroutine has just
// done so.
func (p *partition) fetch(ctx context.Context, after uint64, maxBytes int) error {
	p.fetching.Lock()
	defer p.fetching.Unlock()
	if _, found := p.cached(&after, 1, 1); found {
		return nil
	}
	p.l.metrics.FetchedDirect(p.number)
	c, err := p.readChunk(ctx, after, maxBytes)
	if err != nil {
		var damaged *journal.DamagedError
		if !errors.As(err, &damaged) {
			p.l.metrics.FetchFailed(p.number)
			return p.l.unreadable(ctx, err)
		}
		return err
	}
	p.l.contacted()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted += int64(len(c.Records))
	p.weighed += int64(c.Bytes)
	if c.Last == after {
		return nil
	}
	p.chunks = chunks.Add(p.chunks, c, maxChunks, max(fetchBytes, p.l.cfg.TailBytes/len(p.l.partitions)))
	return nil
}

// maxChunks bounds what is kept of a partition beside the bytes.
const maxChunks = 64

// readChunk reads the rows after a position, which the partition has.
func (p *partition) readChunk(ctx context.Context, after uint64, maxBytes int) (*chunks.Chunk, error) {
	for attempt := 0; ; attempt++ {
		g := p.l.segmentOf(p.number, after)
		rows, err := p.l.store.rows(ctx, g.slot, p.number, int64(after), max(fetchBytes, maxBytes))
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 && uint64(rows[0].last)-uint64(rows[0].records) <= after {
			return p.chunkOf(after, rows)
		}
		// The segments have changed, or rows are lost.
		if attempt == 2 {
			return nil, p.missing(after, rows)
		}
		if err := p.l.loadSegments(ctx); err != nil {
			return nil, err
		}
		if err := p.l.refresh(ctx); err != nil {
			return nil, err
		}
		trimmed, end := p.Bounds()
		if trimmed > after || end <= after {
			return &chunks.Chunk{After: after, Last: max(trimmed, after)}, nil
		}
	}
}

// chunkOf returns the records of rows after a position. It ends before a damaged row; if
// that is the first, it fails with a *journal.DamagedError.
func (p *partition) chunkOf(after uint64, rows []row) (*chunks.Chunk, error) {
	c := &chunks.Chunk{After: after, Last: after}
	for _, r := range rows {
		if uint64(r.last)-uint64(r.records) > c.Last {
			break // a hole
		}
		records, err := decodeRow(r.content, r.last, int(r.records), r.at.UTC())
		if err != nil && c.Last > after {
			break
		}
		if err != nil {
			return nil, p.damaged(&journal.DamagedError{First: after + 1, Last: uint64(r.last), At: r.at, Bytes: len(r.content), Raw: r.content[:min(len(r.content), maxRaw)]}, err)
		}
		c.Append(records)
	}
	return c, nil
}

// maxRaw bounds what a *journal.DamagedError has of a row.
const maxRaw = 256 << 10

var errMissing = errors.New("rows of the log are missing")

// missing reports the records after a position that no row has.
func (p *partition) missing(after uint64, next []row) error {
	_, last := p.Bounds()
	if len(next) > 0 {
		last = uint64(next[0].last) - uint64(next[0].records)
	}
	return p.damaged(&journal.DamagedError{First: after + 1, Last: last}, errMissing)
}

func (p *partition) damaged(d *journal.DamagedError, cause error) error {
	p.l.metrics.Lost(p.number, d.Last-d.First+1)
	p.l.log.Error("log records damaged", zap.Int("partition", p.number), zap.Uint64("first", d.First), zap.Uint64("last", d.Last), zap.Error(cause))
	return fmt.Errorf("partition %d: %w: %w", p.number, cause, d)
}

// Wait implements eventlog.Partition.
func (o owned) Wait(ctx context.Context, after uint64) error {
	for {
		if err := o.check(ctx); err != nil {
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
	if max(after, p.trimmed) < p.end {
		return nil, true
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
	return cursors.Owner{Store: o.p.l.cursors, Log: o.p.l.id, Partition: o.p.number, Token: o.token, Bounds: o.p}
}

// Register implements eventlog.Log.
func (l *Log) Register(ctx context.Context, reader string, from journal.Start) error {
	return cursors.RegisterAll(ctx, l.cursors, l.id, reader, l.partitions, from)
}

// Refresh implements cursors.Bounds.
func (p *partition) Refresh(ctx context.Context) error { return p.l.refresh(ctx) }

// id names the log and the partition.
func (p *partition) id() string { return fmt.Sprintf("%s/%d", p.l.id, p.number) }
