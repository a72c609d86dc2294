package delivery

import (
	"encoding/hex"
	"math"

	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// batch is a number of events that are sent to a sink in one call.
type batch struct {
	events  []sdk.Event
	seqs    []uint64 // of the journal records of the events
	records []sdk.Record
	ids     [][16]byte // of the records, after release
	count   int
	origins []reader.Origin // of its chunk
	bytes   int
	keys    uint64 // the key groups of its events, one bit each; see busyKeys

	firstSeq uint64 // of records[0]
	state    batchState
	place    batchPlace
}

// batchState is how far a batch is on its way to the sink.
type batchState struct {
	inFlight bool
	settled  bool // every record is committed or a dead letter

	staged       bool   // some records are staged
	stagedTo     uint64 // the last of them
	session      uint64 // of the sink, in which they were staged
	splitSession bool   // they were staged in more than one session
}

// batchPlace is where the events of a batch are in the journal.
type batchPlace struct {
	reader  *sinkReader
	begin   journal.Position // of its chunk
	end     journal.Position // of its chunk, if last
	last    bool             // of its chunk
	through uint64           // the last sequence number given when it was received
}

func (b *batch) lastSeq() uint64 { return b.firstSeq + uint64(b.count) - 1 }

// markStaged records that the sink staged records of the batch, up to a sequence
// number.
func (b *batch) markStaged(session, upTo uint64) {
	s := &b.state
	s.stagedTo = max(s.stagedTo, upTo)
	s.splitSession = s.splitSession || (s.staged && s.session != session)
	s.staged, s.session = true, session
}

// Key groups of batches whose order does not depend on the distinct id.
const (
	keysNone = uint64(0)              // the order does not count
	keysAll  = uint64(math.MaxUint64) // the order of all events counts
)

// keyGroup returns the group of the event's distinct id, from 0 to 63.
func keyGroup(ev *sdk.Event) uint64 {
	return (filter.HashText(ev.DistinctID) + uint64(ev.ProjectID)) % 64
}

// busyKeys returns the key groups of which no other batch may have events while b is in
// flight. The order that the sink declares is known once it is open, and may change when
// it is opened again.
func (b *batch) busyKeys(ordering sdk.Ordering) uint64 {
	switch ordering {
	case sdk.OrderNone:
		return keysNone
	case sdk.OrderPerKey:
		return b.keys
	case sdk.OrderTotal:
	}
	return keysAll
}

// newBatch encodes events for a sink, with the ids that f redacts.
func newBatch(f *filter.Filter, events []sdk.Event, seqs []uint64) *batch {
	b := &batch{events: events, seqs: seqs, records: make([]sdk.Record, len(events)), count: len(events)}
	size := 0
	for i := range events {
		b.keys |= 1 << keyGroup(&events[i])
		size += len(events[i].Properties) + reader.EventOverhead + 64
	}
	buf, redactsIDs := make([]byte, 0, size), f.RedactsIDs()
	for i := range events {
		ev := &events[i]
		if redactsIDs {
			redacted := f.WithRedactedIDs(*ev)
			ev = &redacted
		}
		start := len(buf)
		buf = ev.AppendJSON(buf)
		b.records[i] = sdk.Record{
			UUID: uuidBytes(ev.UUID), JSON: buf[start:len(buf):len(buf)], ReceivedAt: ev.ReceivedAt, ProjectID: ev.ProjectID,
		}
	}
	b.bytes = len(buf)
	return b
}

// release frees the events. The batch is settled, or its events are read again
// if they must be sent again.
func (b *batch) release() {
	if b.state.staged && b.ids == nil {
		b.ids = make([][16]byte, len(b.records))
		for i := range b.records {
			b.ids[i] = uuidBytes(b.events[i].UUID) // the record may have a redacted one
		}
	}
	b.events, b.seqs, b.records = nil, nil, nil
}

// splitBatches splits events into batches. With an order per distinct id, the
// events of one id go to one of up to lanes lanes, so that the batches of
// different lanes can be in flight together.
func splitBatches(f *filter.Filter, events []sdk.Event, seqs []uint64, size batchSize, ordering sdk.Ordering, lanes int) (out []*batch) {
	lanes = min(lanes, (len(events)+size.events-1)/size.events)
	if ordering != sdk.OrderPerKey || lanes < 2 {
		return appendBatches(out, f, events, seqs, size)
	}
	byLane, seqsByLane := make([][]sdk.Event, lanes), make([][]uint64, lanes)
	for i := range events {
		lane := keyGroup(&events[i]) % uint64(lanes)
		byLane[lane], seqsByLane[lane] = append(byLane[lane], events[i]), append(seqsByLane[lane], seqs[i])
	}
	for i, lane := range byLane {
		out = appendBatches(out, f, lane, seqsByLane[i], size)
	}
	return out
}

// appendBatches cuts events into batches, in order.
func appendBatches(out []*batch, f *filter.Filter, events []sdk.Event, seqs []uint64, size batchSize) []*batch {
	for start := 0; start < len(events); {
		end := start + size.count(events[start:])
		out = append(out, newBatch(f, events[start:end:end], seqs[start:end:end]))
		start = end
	}
	return out
}

// uuidBytes returns the bytes of a uuid in canonical form.
func uuidBytes(s string) (id [16]byte) {
	var text [32]byte
	n := 0
	for i := 0; i < len(s) && n < len(text); i++ {
		if s[i] != '-' {
			text[n] = s[i]
			n++
		}
	}
	_, _ = hex.Decode(id[:], text[:]) // the decoder makes only valid ones
	return id
}
