package ingestion

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// parcel is a stretch of the journal on its way to a sink.
type parcel struct {
	events   []sdk.Event
	records  []sdk.Record
	count    int
	firstSeq uint64 // of records[0]
	begin    journal.Position
	end      journal.Position
	bytes    int
	settled  bool // safe, or set aside, every record of it

	staged  bool   // some of it
	session uint64 // of the sink in which it was staged
	torn    bool   // staged in more than one session
}

func (p *parcel) lastSeq() uint64 { return p.firstSeq + uint64(p.count) - 1 }

// stagedIn takes note that the sink staged something of the parcel.
func (p *parcel) stagedIn(session uint64) {
	p.torn = p.torn || (p.staged && p.session != session)
	p.staged, p.session = true, session
}

// pack encodes a run for a sink.
func pack(r *run) *parcel {
	p := &parcel{
		events: r.events, records: make([]sdk.Record, len(r.events)), count: len(r.events), firstSeq: r.begin.Count + 1,
		begin: r.begin, end: r.end, settled: len(r.events) == 0,
	}
	buf := make([]byte, 0, r.bytes+64*len(r.events))
	for i := range r.events {
		ev := &r.events[i]
		start := len(buf)
		buf = ev.AppendJSON(buf)
		p.records[i] = sdk.Record{
			UUID: uuidBytes(ev.UUID), JSON: buf[start:len(buf):len(buf)], ReceivedAt: ev.ReceivedAt, ProjectID: ev.ProjectID,
		}
	}
	p.bytes = len(buf)
	return p
}

// uuidBytes reads a uuid as we write them.
func uuidBytes(s string) (id [16]byte) {
	var text [32]byte
	n := 0
	for i := 0; i < len(s) && n < len(text); i++ {
		if s[i] != '-' {
			text[n] = s[i]
			n++
		}
	}
	_, _ = hex.Decode(id[:], text[:]) // Decode makes only valid ones
	return id
}

// batch is the part of the parcel from index from up to to, as a batch.
func (p *parcel) batch(instance string, from, to int, attempt uint32) *sdk.Batch {
	b := &sdk.Batch{
		Attempt: attempt, FirstSeq: p.firstSeq + uint64(from), LastSeq: p.firstSeq + uint64(to) - 1, Records: p.records[from:to:to],
	}
	b.ID = batchID(instance, b)
	return b
}

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// batchID names the content of a batch: a ULID of the time its first event
// arrived and a hash of what is in it. The same events under the same numbers
// have the same id in every attempt, by any process; other events have another.
func batchID(instance string, b *sdk.Batch) string {
	h := sha256.New()
	var numbers [16]byte
	binary.BigEndian.PutUint64(numbers[:], b.FirstSeq)
	binary.BigEndian.PutUint64(numbers[8:], b.LastSeq)
	h.Write([]byte(instance))
	h.Write(numbers[:])
	for i := range b.Records {
		h.Write(b.Records[i].UUID[:])
	}
	// 128 bits are 26 letters of 5 bits with two zero bits in front.
	var id [17]byte
	binary.BigEndian.PutUint64(id[:8], uint64(b.Records[0].ReceivedAt.UnixMilli())<<16)
	copy(id[6:16], h.Sum(nil))
	return crockford.EncodeToString(shiftRight2(id))[:26]
}

// shiftRight2 moves the bits of id two places to the right.
func shiftRight2(id [17]byte) []byte {
	for i := len(id) - 1; i > 0; i-- {
		id[i] = id[i]>>2 | id[i-1]<<6
	}
	id[0] >>= 2
	return id[:]
}

// sizes is how large a batch of this sink may be, and how long it may wait.
type sizes struct {
	events, bytes int
	linger        time.Duration
}

func (d *delivery) sizes() sizes {
	c, p := d.cfg.Deliver, d.sink.Properties()
	s := sizes{c.MaxEvents, c.MaxBytes, c.Linger}
	if p.MaxEvents > 0 {
		s.events = min(p.MaxEvents, maxBatchEvents)
	}
	if p.MaxBytes > 0 {
		s.bytes = min(p.MaxBytes, maxBatchBytes)
	}
	if p.Linger > 0 {
		s.linger = min(p.Linger, time.Minute)
	}
	return s
}

// maxBatchEvents is the most that is ever sent in one call.
const maxBatchEvents = 50_000

// assemble makes parcels from at on and hands them out until ctx ends.
func (d *delivery) assemble(ctx context.Context, at journal.Position, out chan<- *parcel) {
	f := newFeed(d.log, d.cfg.Limits, at)
	pause := backoff{least: d.cfg.Deliver.RetryMin, most: d.cfg.Deliver.RetryMax}
	for ctx.Err() == nil {
		r, err := d.gather(ctx, f)
		if err != nil {
			if ctx.Err() == nil {
				d.tally.failed("retrying", err)
				sleep(ctx, pause.pause())
			}
			continue
		}
		pause.reset()
		d.skipBroken(r)
		select {
		case out <- pack(r):
		case <-ctx.Done():
		}
	}
}

// gather waits for events and collects them until the batch is full or its
// first event has waited long enough.
func (d *delivery) gather(ctx context.Context, f *feed) (*run, error) {
	size := d.sizes()
	// Events of a run belong to its parcel: nothing of it is used again. The
	// next one will be about as long as the one before.
	room := min(size.events, d.usual+16)
	r := &run{events: make([]sdk.Event, 0, room), ends: make([]journal.Position, 0, room)}
	r.reset(f.pos)
	defer func() { d.usual = len(r.events) }()
	var wait context.Context
	for {
		full, err := f.fill(ctx, r, size.events, size.bytes)
		if err != nil {
			// What was gathered before is not lost: the feed is behind it.
			if !r.empty() {
				return r, nil
			}
			return nil, err
		}
		if full || (wait != nil && wait.Err() != nil) {
			return r, nil
		}
		if wait == nil && !r.empty() {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(ctx, size.linger)
			defer cancel()
		}
		until := wait
		if until == nil {
			until = ctx
		}
		err = f.wait(until)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil || until.Err() != nil:
		case r.empty():
			return nil, err
		default:
			return r, nil
		}
	}
}

func (d *delivery) skipBroken(r *run) {
	for i := range r.broken {
		d.logger.Error("a record of the journal cannot be read; the worker keeps it as a dead letter")
		d.tally.failed("delivering", r.broken[i].err)
	}
}
