package clickhouse

import (
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/personcolumn"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// event is a row of the table of events. Its encoding is RowBinary, in the order of the
// fields.
type event struct {
	project    int64
	name       string
	at         int64 // unix microseconds
	row        int64
	uuid       uuid.UUID
	distinctID string
	person     string // see personcolumn.Encode
	received   int64  // microseconds after at
	url        string
	flagKey    string
	response   string
	chain      string
	properties string
}

func newEvent(in *events.Insertion, row int64) event {
	ev := in.Event
	e := event{
		project: ev.ProjectID, name: ev.Name, at: ev.Timestamp.UnixMicro(), row: row, uuid: in.UUID, distinctID: ev.DistinctID,
		url: in.Columns.CurrentURL, flagKey: in.Columns.FlagKey, response: in.Columns.FlagResponse, chain: ev.ElementsChain, properties: in.Properties,
	}
	e.received = ev.ReceivedAt.UnixMicro() - e.at
	if in.HasPerson {
		e.person = personcolumn.Encode(in.Person, e.project, e.distinctID)
	}
	return e
}

func (e *event) append(dst []byte) []byte {
	dst = appendInt(dst, e.project)
	dst = appendString(dst, e.name)
	dst = appendInt(dst, e.at)
	dst = appendInt(dst, e.row)
	dst = appendUUID(dst, e.uuid)
	dst = appendString(dst, e.distinctID)
	dst = appendString(dst, e.person)
	dst = appendInt(dst, e.received)
	for _, s := range []string{e.url, e.flagKey, e.response, e.chain, wire.PackProperties(e.properties, e.url)} {
		dst = appendString(dst, s)
	}
	return dst
}

// readEvent reads the columns of an event.
func readEvent(r *wire.Reader) (e event) {
	e.project, e.name, e.at, e.row, e.uuid = r.Int(), r.String(), r.Int(), r.Int(), r.UUID()
	e.distinctID, e.person, e.received = r.String(), r.String(), r.Int()
	e.url, e.flagKey, e.response, e.chain, e.properties = r.String(), r.String(), r.String(), r.String(), r.String()
	e.properties = wire.UnpackProperties(e.properties, e.url)
	return e
}

func appendInt(dst []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(dst, uint64(v)) }

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendUUID appends the two halves of a uuid, each in little-endian order.
func appendUUID(dst []byte, id uuid.UUID) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(id[:8]))
	return binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(id[8:]))
}

// idHash is the hash of an event in the table of ids: 48 bits.
func idHash(id events.Identity) uint64 {
	h := binary.BigEndian.Uint64(id.UUID[:8])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(id.UUID[8:]) ^ uint64(id.Project)*0xff51afd7ed558ccd
	h ^= h >> 31
	h *= 0xbf58476d1ce4e5b9
	return (h ^ h>>29) >> 16
}

// dayMicros is a day in microseconds.
const dayMicros = 86_400_000_000

// dayOf is the day of a time since 1970.
func dayOf(at int64) int64 {
	day := at / dayMicros
	if at%dayMicros < 0 {
		day--
	}
	return day
}
