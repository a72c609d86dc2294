package clickhouse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons/stage"
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
	person     string // see encodePerson
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
		e.person = encodePerson(in.Person, e.project, e.distinctID)
	}
	return e
}

// The persons that cost no bytes.
const (
	ownPerson  = "=" // has the uuid that follows from project and distinct id
	textPerson = "d" // has the distinct id as its uuid
)

// encodePerson returns the person column: empty without a person, a short text, or the 16
// bytes of the uuid.
func encodePerson(id uuid.UUID, project int64, distinctID string) string {
	switch text := id.String(); text {
	case stage.PersonUUID(project, distinctID):
		return ownPerson
	case distinctID:
		return textPerson
	}
	return string(id[:])
}

// decodePerson returns the uuid of a person column, nil without one.
func decodePerson(person string, project int64, distinctID string) *uuid.UUID {
	var id uuid.UUID
	var err error
	switch {
	case person == ownPerson:
		id, err = uuid.Parse(stage.PersonUUID(project, distinctID))
	case person == textPerson:
		id, err = uuid.Parse(distinctID)
	case len(person) == len(id):
		copy(id[:], person)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	return &id
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
	for _, s := range []string{e.url, e.flagKey, e.response, e.chain, e.properties} {
		dst = appendString(dst, s)
	}
	return dst
}

func (r *reader) event() (e event) {
	e.project, e.name, e.at, e.row, e.uuid = r.int(), r.string(), r.int(), r.int(), r.uuid()
	e.distinctID, e.person, e.received = r.string(), r.string(), r.int()
	e.url, e.flagKey, e.response, e.chain, e.properties = r.string(), r.string(), r.string(), r.string(), r.string()
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

// reader reads RowBinary. After an error all values are zero, and err has it.
type reader struct {
	*bufio.Reader
	err error
	buf [16]byte
}

// maxValue is the longest string that is read.
const maxValue = 256 << 20

var errLongValue = errors.New("a value in the answer is too long")

// more reports whether a row follows.
func (r *reader) more() bool {
	if r.err != nil {
		return false
	}
	if _, err := r.Peek(1); err != nil {
		if err != io.EOF { //nolint:errorlint // Peek does not wrap it
			r.err = err
		}
		return false
	}
	return true
}

func (r *reader) fixed(n int) []byte {
	if r.err == nil {
		if _, err := io.ReadFull(r, r.buf[:n]); err != nil {
			r.fail(err)
		}
	}
	if r.err != nil {
		clear(r.buf[:])
	}
	return r.buf[:n]
}

func (r *reader) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.err = fmt.Errorf("read the answer: %w", err)
}

func (r *reader) int() int64 { return int64(binary.LittleEndian.Uint64(r.fixed(8))) }

// day reads an Int32.
func (r *reader) day() int64 { return int64(int32(binary.LittleEndian.Uint32(r.fixed(4)))) }

func (r *reader) byte() byte { return r.fixed(1)[0] }

func (r *reader) string() string { return string(r.bytes(nil)) }

// bytes reads a string into the memory of dst.
func (r *reader) bytes(dst []byte) []byte {
	if r.err != nil {
		return nil
	}
	n, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		r.fail(err)
		return nil
	case n > maxValue:
		r.err = errLongValue
		return nil
	}
	if uint64(cap(dst)) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	if _, err := io.ReadFull(r, dst); err != nil {
		r.fail(err)
	}
	return dst
}

func (r *reader) uuid() (id uuid.UUID) {
	b := r.fixed(16)
	binary.BigEndian.PutUint64(id[:8], binary.LittleEndian.Uint64(b[:8]))
	binary.BigEndian.PutUint64(id[8:], binary.LittleEndian.Uint64(b[8:16]))
	return id
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
