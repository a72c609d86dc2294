package ingestion

import (
	"context"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// Log is the journal as its readers need it.
type Log interface {
	Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error)
	Wait(ctx context.Context, after uint64) error
	Register(ctx context.Context, reader string, from journal.Start) (journal.Position, error)
	Commit(ctx context.Context, reader string, p journal.Position) error
	Unregister(ctx context.Context, reader string) error
	Stats(ctx context.Context) (journal.Stats, error)
}

// run is a stretch of the journal, decoded: consecutive events, each with the
// position behind it, and what was dropped or changed between them.
type run struct {
	events  []sdk.Event
	ends    []journal.Position
	notices []said
	broken  []brokenRecord
	begin   journal.Position
	end     journal.Position // behind everything in the run
	bytes   int
}

// said is a notice with where it belongs.
type said struct {
	event.Notice
	project int64
}

// brokenRecord is a record that is not one of ours.
type brokenRecord struct {
	record journal.Record
	err    error
}

// empty reports whether the run goes nowhere.
func (r *run) empty() bool { return r.begin == r.end }

// idle reports whether there is nothing in the run to do.
func (r *run) idle() bool { return len(r.events) == 0 && len(r.notices) == 0 && len(r.broken) == 0 }

func (r *run) reset(at journal.Position) {
	*r = run{events: r.events[:0], ends: r.ends[:0], notices: r.notices[:0], begin: at, end: at}
}

// eventOverhead is what an event takes beside its properties, about.
const eventOverhead = 256

// feed reads the journal from a position on and decodes it. It is used by one
// goroutine.
type feed struct {
	log     Log
	decoder *event.Decoder
	wants   func(*event.Record) bool // records that are not wanted are passed over; nil wants all
	pos     journal.Position
	records []journal.Record // read and not decoded yet
	current event.Decoded    // of the record behind pos
	next    int              // the first of current that was not handed out
	seq     uint64           // of that record, 0 when there is none
}

func newFeed(log Log, limits event.Limits, from journal.Position) *feed {
	return &feed{log: log, decoder: event.NewDecoder(limits).LimitNotices(listedNotices), pos: from}
}

const (
	// listedNotices is how many notices of a kind a record gives one by one:
	// more than a project has keys for its warnings in an hour.
	listedNotices = 2000
	// maxNotices is how many a run gathers before it is full without events.
	maxNotices = 10_000
	// keptEvents is how large the memory may be that is kept for the next record.
	keptEvents = 16 << 10
)

// readRecords and readBytes bound one read of the journal.
const (
	readRecords = 1024
	readBytes   = 4 << 20
)

// fill adds what the journal has, without waiting for more, until the run holds
// maxEvents events or about maxBytes of them, at least one, or enough notices.
// It reports whether it is full.
func (f *feed) fill(ctx context.Context, r *run, maxEvents, maxBytes int) (full bool, err error) {
	for {
		if f.seq == 0 {
			if len(r.notices)+len(r.broken) >= maxNotices || len(r.events) >= maxEvents || (len(r.events) > 0 && r.bytes >= maxBytes) {
				return true, nil
			}
			ok, err := f.load(ctx, r)
			if !ok || err != nil {
				return false, err
			}
		}
		for f.seq != 0 {
			size := len(f.current.Events[f.next].Properties) + eventOverhead
			if len(r.events) >= maxEvents || (len(r.events) > 0 && r.bytes+size > maxBytes) {
				return true, nil
			}
			f.take(r, size)
		}
	}
}

// wait returns when there may be more to fill.
func (f *feed) wait(ctx context.Context) error {
	if f.seq != 0 || len(f.records) > 0 {
		return nil
	}
	return f.log.Wait(ctx, f.pos.Seq)
}

// load decodes the next record; false when there is none.
func (f *feed) load(ctx context.Context, r *run) (ok bool, err error) {
	if len(f.records) == 0 {
		if f.records, err = f.log.Read(ctx, f.pos.Seq, readRecords, readBytes); err != nil || len(f.records) == 0 {
			return false, err
		}
	}
	record := f.records[0]
	f.records[0] = journal.Record{}
	f.records = f.records[1:]
	f.current = event.Decoded{Events: f.current.Events[:0], Index: f.current.Index[:0], Notices: f.current.Notices[:0]}
	f.open(r, record)
	return true, nil
}

// open decodes a record and gets ready to hand out its events.
func (f *feed) open(r *run, record journal.Record) {
	rec, err := event.ParseRecord(record.Data)
	wanted := f.wants == nil || f.wants(&rec)
	if err != nil && wanted {
		r.broken = append(r.broken, brokenRecord{record, err})
	}
	if err != nil || !wanted {
		f.finish(r, record.Seq)
		return
	}
	f.decoder.Decode(&rec, &f.current)
	f.seq, f.next = record.Seq, 0
	done := uint32(0) // of a record that was left in the middle
	if record.Seq == f.pos.Seq+1 {
		done = f.pos.Index
	}
	for f.next < len(f.current.Index) && f.current.Index[f.next] < done {
		f.next++
	}
	for _, n := range f.current.Notices {
		if n.Index >= done {
			r.notices = append(r.notices, said{n, rec.ProjectID})
		}
	}
	if f.next == len(f.current.Events) {
		f.finish(r, record.Seq)
	}
}

// take hands out one event of the current record.
func (f *feed) take(r *run, size int) {
	i := f.next
	f.next++
	f.pos.Count++
	r.events = append(r.events, f.current.Events[i])
	r.bytes += size
	if f.next == len(f.current.Events) {
		f.finish(r, f.seq)
	} else {
		f.pos.Seq, f.pos.Index = f.seq-1, f.current.Index[i]+1
		r.end = f.pos
	}
	r.ends = append(r.ends, f.pos)
}

// finish moves behind the record.
func (f *feed) finish(r *run, seq uint64) {
	f.pos.Seq, f.pos.Index, f.seq = seq, 0, 0
	r.end = f.pos
	if cap(f.current.Events) > keptEvents {
		f.current = event.Decoded{}
	}
}
