package ingestion

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// parcel is events on their way to a sink in one batch.
type parcel struct {
	events   []sdk.Event
	records  []sdk.Record
	ids      [][16]byte // of the records, when these were let go
	count    int
	bytes    int
	keys     uint64 // which of 64 groups of distinct ids it holds events of
	walk     *walk
	begin    journal.Position // of its stretch
	end      journal.Position // of its stretch, when it is the last of it
	last     bool
	firstSeq uint64 // of records[0]
	through  uint64 // the last number that was given when it was received
	flying   bool
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

// The groups of distinct ids a parcel holds events of.
const (
	keysNone = uint64(0)              // order does not count
	keysAll  = uint64(math.MaxUint64) // it counts for all events
)

// slot is the group of a distinct id.
func slot(ev *sdk.Event) uint64 {
	return (hashText(ev.DistinctID) + uint64(ev.ProjectID)) % 64
}

// pack encodes events for a sink.
func pack(events []sdk.Event, keys uint64) *parcel {
	p := &parcel{events: events, records: make([]sdk.Record, len(events)), count: len(events), keys: keys}
	size := 0
	for i := range events {
		size += len(events[i].Properties) + eventOverhead + 64
	}
	buf := make([]byte, 0, size)
	for i := range events {
		ev := &events[i]
		start := len(buf)
		buf = ev.AppendJSON(buf)
		p.records[i] = sdk.Record{
			UUID: uuidBytes(ev.UUID), JSON: buf[start:len(buf):len(buf)], ReceivedAt: ev.ReceivedAt, ProjectID: ev.ProjectID,
		}
	}
	p.bytes = len(buf)
	return p
}

// release lets go of the events: they are settled, or are read again if need
// be.
func (p *parcel) release() {
	if p.staged && p.ids == nil {
		p.ids = make([][16]byte, len(p.records))
		for i := range p.records {
			p.ids[i] = p.records[i].UUID
		}
	}
	p.events, p.records = nil, nil
}

// parcels parts events into batches. Where order counts for each distinct id,
// those of one id go into one lane of up to lanes, so that the lanes can be on
// the way side by side.
func (d *delivery) parcels(events []sdk.Event, lanes int) (out []*parcel) {
	size, ordering := d.sizes(), d.sink.Properties().Ordering
	if d.sink.Properties().Commit == sdk.CommitOnFlush {
		ordering = sdk.OrderTotal
	}
	lanes = min(lanes, (len(events)+size.events-1)/size.events)
	if ordering != sdk.OrderPerKey || lanes < 2 {
		return chunks(out, events, size, ordering)
	}
	apart := make([][]sdk.Event, lanes)
	for i := range events {
		lane := slot(&events[i]) % uint64(lanes)
		apart[lane] = append(apart[lane], events[i])
	}
	for _, lane := range apart {
		out = chunks(out, lane, size, ordering)
	}
	return out
}

// chunks cuts events into batches, in order.
func chunks(out []*parcel, events []sdk.Event, size sizes, ordering sdk.Ordering) []*parcel {
	for start := 0; start < len(events); {
		end, bytes := start, 0
		keys := keysNone
		for ; end < len(events) && end-start < size.events; end++ {
			bytes += len(events[end].Properties) + eventOverhead
			if end > start && bytes > size.bytes {
				break
			}
			keys |= 1 << slot(&events[end])
		}
		switch ordering {
		case sdk.OrderPerKey:
		case sdk.OrderNone:
			keys = keysNone
		default:
			keys = keysAll
		}
		out = append(out, pack(events[start:end:end], keys))
		start = end
	}
	return out
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
