// Package reader reads events off the journal, from a cursor on.
//
// A Reader reads records, decodes them and hands their events out in batches,
// each event with the position behind it, so that its owner may stop in the
// middle of a record. A Committer moves the cursor in the journal behind the
// owner, without making it wait.
//
// The pipeline's lanes, its followers and each sink have a reader of their own.
// A range of records that the journal has lost is part of a batch, too: the
// reader moves over it, and its owner keeps it as a dead letter.
//
// A reader changes nothing: position and cursor belong to its owner.
package reader

import (
	"context"
	"errors"
	"slices"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/tracing"
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

// Batch is a section of the journal, decoded: consecutive events, each with the
// position behind it, and the notices between them.
type Batch struct {
	Events     []sdk.Event
	Ends       []journal.Position // behind each of Events
	Notices    []ProjectNotice
	Unreadable []Unreadable
	Damaged    []*journal.DamagedError // ranges of records that the journal has lost
	Origins    []Origin                // of the records whose requests are traced, in order
	Begin      journal.Position
	End        journal.Position // behind everything in the batch

	bytes int
}

// ProjectNotice is a notice with the project of its event.
type ProjectNotice struct {
	event.Notice
	ProjectID int64
}

// Origin is the span of the request of a record.
type Origin struct {
	Seq  uint64 // of the record
	Span tracing.Origin
}

// maxOrigins bounds the origins of a batch; the requests beyond it have no link.
const maxOrigins = 1024

// Spans returns the spans of the requests in the batch.
func (b *Batch) Spans() []tracing.Origin {
	var out []tracing.Origin
	for _, o := range b.Origins {
		out = append(out, o.Span)
	}
	return out
}

// SpansOf returns the spans of the records with these numbers, which are ascending and
// may repeat.
func SpansOf(origins []Origin, seqs []uint64) (out []tracing.Origin) {
	for _, o := range origins {
		if _, ok := slices.BinarySearch(seqs, o.Seq); ok {
			out = append(out, o.Span)
		}
	}
	return out
}

// Unreadable is a record that cannot be parsed.
type Unreadable struct {
	Record journal.Record
	Err    error
}

// Record returns the number of the journal record that the event at i is in.
func (b *Batch) Record(i int) uint64 {
	end := b.Ends[i]
	if end.Index > 0 {
		return end.Seq + 1
	}
	return end.Seq
}

// Empty reports whether the batch covers no part of the journal.
func (b *Batch) Empty() bool { return b.Begin == b.End }

// Idle reports whether the batch holds nothing to process.
func (b *Batch) Idle() bool {
	return len(b.Events) == 0 && len(b.Notices) == 0 && len(b.Unreadable) == 0 && len(b.Damaged) == 0
}

// Reset empties the batch, which begins at the position then, and keeps its
// memory.
func (b *Batch) Reset(at journal.Position) {
	*b = Batch{Events: b.Events[:0], Ends: b.Ends[:0], Notices: b.Notices[:0], Origins: b.Origins[:0], Begin: at, End: at}
}

// EventOverhead is about how many bytes an event takes beside its properties.
const EventOverhead = 256

const (
	// maxListed bounds the notices of a kind that a record lists one by one. It
	// exceeds the number of keys a project has for its warnings in an hour.
	maxListed = 2000
	// maxNotices is the number of notices at which a batch is full without
	// events.
	maxNotices = 10_000
	// maxDamaged is the number of damaged ranges at which a batch is full.
	maxDamaged = 16
	// maxKeptEvents bounds the memory that is kept for the next record.
	maxKeptEvents = 16 << 10
)

// MaxRecords and MaxBytes bound one read of the journal.
const (
	MaxRecords = 1024
	MaxBytes   = 4 << 20
)

// Reader reads the journal from a position on. It is for one goroutine.
type Reader struct {
	log     Log
	decoder *event.Decoder
	accept  func(*event.Record) bool
	pos     journal.Position
	records []journal.Record // read, not decoded yet
	current event.Decoded    // the record behind pos
	next    int              // the first event of current that was not handed out
	seq     uint64           // of current, 0 without one
	span    tracing.Origin   // of current
}

// New returns a reader that starts at the position from. It skips the records
// that accept rejects, without decoding them; nil accepts all.
func New(log Log, limits event.Limits, from journal.Position, accept func(*event.Record) bool) *Reader {
	return &Reader{log: log, decoder: event.NewDecoder(limits).LimitNotices(maxListed), pos: from, accept: accept}
}

// Position returns the position behind the last event that was handed out.
func (r *Reader) Position() journal.Position { return r.pos }

// Fill adds events that the journal has now, until the batch holds maxEvents
// events or about maxBytes of them, at least one, or enough notices. It reports
// whether the batch is full.
func (r *Reader) Fill(ctx context.Context, b *Batch, maxEvents, maxBytes int) (full bool, err error) {
	for {
		if r.seq == 0 {
			if len(b.Notices)+len(b.Unreadable) >= maxNotices || len(b.Damaged) >= maxDamaged || len(b.Events) >= maxEvents || (len(b.Events) > 0 && b.bytes >= maxBytes) {
				return true, nil
			}
			ok, err := r.loadRecord(ctx, b)
			if !ok || err != nil {
				return false, err
			}
		}
		for r.seq != 0 {
			size := len(r.current.Events[r.next].Properties) + EventOverhead
			if len(b.Events) >= maxEvents || (len(b.Events) > 0 && b.bytes+size > maxBytes) {
				return true, nil
			}
			r.handOutEvent(b, size)
		}
	}
}

// Wait returns when Fill may add more.
func (r *Reader) Wait(ctx context.Context) error {
	if r.seq != 0 || len(r.records) > 0 {
		return nil
	}
	return r.log.Wait(ctx, r.pos.Seq)
}

// loadRecord decodes the next record, or moves over damaged ones; false when the
// journal has no more.
func (r *Reader) loadRecord(ctx context.Context, b *Batch) (ok bool, err error) {
	if len(r.records) == 0 {
		r.records, err = r.log.Read(ctx, r.pos.Seq, MaxRecords, MaxBytes)
		if damaged, ok := errors.AsType[*journal.DamagedError](err); ok && damaged.Last > r.pos.Seq {
			b.Damaged = append(b.Damaged, damaged)
			r.finishRecord(b, damaged.Last)
			return true, nil
		}
		if err != nil || len(r.records) == 0 {
			return false, err
		}
	}
	record := r.records[0]
	r.records[0] = journal.Record{}
	r.records = r.records[1:]
	r.current = event.Decoded{Events: r.current.Events[:0], Index: r.current.Index[:0], Notices: r.current.Notices[:0]}
	r.decodeRecord(b, record)
	return true, nil
}

// decodeRecord decodes a record and prepares to hand out its events.
func (r *Reader) decodeRecord(b *Batch, record journal.Record) {
	if event.IsErasure(record.Data) {
		r.finishRecord(b, record.Seq)
		return
	}
	rec, err := event.ParseRecord(record.Data)
	accepted := r.accept == nil || r.accept(&rec)
	if err != nil && accepted {
		b.Unreadable = append(b.Unreadable, Unreadable{record, err})
	}
	if err != nil || !accepted {
		r.finishRecord(b, record.Seq)
		return
	}
	r.decoder.Decode(&rec, &r.current)
	r.seq, r.next = record.Seq, 0
	r.span = rec.Trace
	done := uint32(0) // items handed out before, when pos is inside the record
	if record.Seq == r.pos.Seq+1 {
		done = r.pos.Index
	}
	for r.next < len(r.current.Index) && r.current.Index[r.next] < done {
		r.next++
	}
	for _, n := range r.current.Notices {
		if n.Index >= done {
			b.Notices = append(b.Notices, ProjectNotice{n, rec.ProjectID})
		}
	}
	if r.next == len(r.current.Events) {
		r.finishRecord(b, record.Seq)
	}
}

// handOutEvent appends the next event of the current record to the batch.
func (r *Reader) handOutEvent(b *Batch, size int) {
	i := r.next
	r.next++
	r.pos.Count++
	b.Events = append(b.Events, r.current.Events[i])
	b.bytes += size
	r.addOrigin(b)
	if r.next == len(r.current.Events) {
		r.finishRecord(b, r.seq)
	} else {
		r.pos.Seq, r.pos.Index = r.seq-1, r.current.Index[i]+1
		b.End = r.pos
	}
	b.Ends = append(b.Ends, r.pos)
}

// addOrigin adds the span of the current record to the batch, once.
func (r *Reader) addOrigin(b *Batch) {
	n := len(b.Origins)
	if r.span != (tracing.Origin{}) && n < maxOrigins && (n == 0 || b.Origins[n-1].Seq != r.seq) {
		b.Origins = append(b.Origins, Origin{r.seq, r.span})
	}
}

// finishRecord moves behind the record.
func (r *Reader) finishRecord(b *Batch, seq uint64) {
	r.pos.Seq, r.pos.Index, r.seq = seq, 0, 0
	b.End = r.pos
	if cap(r.current.Events) > maxKeptEvents {
		r.current = event.Decoded{}
	}
}
