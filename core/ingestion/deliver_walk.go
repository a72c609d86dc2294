package ingestion

import (
	"context"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// walk is a reader of the journal on behalf of a sink: one for what happens
// now, and, while there is anything for it, one for imports.
type walk struct {
	reader     string
	historical bool
	commit     *committer
	out        chan *stretch
	at         journal.Position // the end of what was received from it
	usual      int              // events in the run gathered last
	sighted    *journal.Position
	bound      *bound             // of what it may read; nil when it may read all
	filled     journal.Position   // the end of the last stretch that held events
	halt       context.CancelFunc // ends the reading
	enough     context.CancelFunc // ends the committer
}

// stretch is a part of the journal, filtered and parted into parcels.
type stretch struct {
	parcels    []*parcel
	skipped    int // events that are not for the sink
	begin, end journal.Position
	sighted    *journal.Position // in front of the first record for the other walk
}

// assemble makes stretches from at on and hands them out until ctx ends.
func (d *delivery) assemble(ctx context.Context, w *walk, at journal.Position) {
	log := d.log
	if w.bound != nil {
		log = w.bound.over(log)
	}
	f := newFeed(log, d.cfg.Limits, at)
	f.wants = func(rec *event.Record) bool {
		if rec.Historical && !w.historical && w.sighted == nil {
			w.sighted = &journal.Position{Seq: f.pos.Seq}
		}
		return rec.Historical == w.historical
	}
	pause := backoff{least: d.cfg.Deliver.RetryMin, most: d.cfg.Deliver.RetryMax}
	for ctx.Err() == nil {
		r, err := d.gather(ctx, w, f)
		if err != nil {
			if ctx.Err() == nil {
				d.tally.failed("retrying", err)
				sleep(ctx, pause.pause())
			}
			continue
		}
		pause.reset()
		d.skipBroken(w, r)
		select {
		case w.out <- d.stretch(w, r):
		case <-ctx.Done():
		}
	}
}

// lanes is how many batches a full stretch is meant for.
func (d *delivery) lanes() int {
	if p := d.sink.Properties(); p.Ordering == sdk.OrderPerKey {
		return d.size.within(d.flights())
	}
	return 1
}

// stretch filters a run and parts it.
func (d *delivery) stretch(w *walk, r *run) *stretch {
	s := &stretch{begin: r.begin, end: r.end, sighted: w.sighted}
	w.sighted = nil
	events := d.rules.keep(r.events, time.Now(), func(why string) {
		s.skipped++
		d.metrics.deliverSkipped.WithLabelValues(d.sink.Name(), why).Inc()
	})
	d.tally.skip(s.skipped)
	s.parcels = d.parcels(events, d.lanes())
	return s
}

// gather waits for events and collects them until the stretch is full or its
// first event has waited long enough.
func (d *delivery) gather(ctx context.Context, w *walk, f *feed) (*run, error) {
	size, lanes := d.sizes(), d.lanes()
	size.events, size.bytes = size.events*lanes, size.bytes*lanes
	// Events of a run belong to its parcels: nothing of it is used again. The
	// next one will be about as long as the one before.
	room := min(size.events, w.usual+16)
	r := &run{events: make([]sdk.Event, 0, room), ends: make([]journal.Position, 0, room)}
	r.reset(f.pos)
	defer func() { w.usual = len(r.events) }()
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

func (d *delivery) skipBroken(w *walk, r *run) {
	for i := range r.broken {
		if !w.historical {
			d.logger.Error("a record of the journal cannot be read; the worker keeps it as a dead letter")
			d.tally.failed("delivering", r.broken[i].err)
		}
	}
}

// bound is how far a walk may read: as far as the other one has come.
type bound struct {
	mu      sync.Mutex
	seq     uint64
	changed chan struct{} // closed when seq moves
}

func newBound(seq uint64) *bound { return &bound{seq: seq, changed: make(chan struct{})} }

func (b *bound) set(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq > b.seq {
		b.seq = seq
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

func (b *bound) get() (seq uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq, b.changed
}

// over returns a view of a log that ends at the bound.
func (b *bound) over(log Log) Log { return &boundedLog{log, b} }

type boundedLog struct {
	Log
	bound *bound
}

// Read returns only records up to the bound.
func (l *boundedLog) Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error) {
	seq, _ := l.bound.get()
	if after >= seq {
		return nil, nil
	}
	records, err := l.Log.Read(ctx, after, maxRecords, maxBytes)
	for i := range records {
		if records[i].Seq > seq {
			return records[:i], err
		}
	}
	return records, err
}

// Wait returns when the bound is behind after, or ctx ends.
func (l *boundedLog) Wait(ctx context.Context, after uint64) error {
	for {
		seq, changed := l.bound.get()
		if seq > after {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
