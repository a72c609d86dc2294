package event

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// The first byte of a journal record. A record of libraryVersion has the field
// Library, one of locationVersion the fields Library and Location, one of
// fieldsVersion these and a list of fields with tags; others have recordVersion, so
// that an older server reads them. ParseRecord fails for any other version, and
// ignores fields with unknown tags.
const (
	recordVersion   = 1
	libraryVersion  = 2
	locationVersion = 3
	fieldsVersion   = 4
)

// The tags of fields. A tag is never used again for another field. tagIndexes may
// occur several times: a field has at most 255 bytes.
const (
	tagTrace   = 1
	tagIndexes = 2
)

const (
	flagHistorical = 1 << iota
	flagAnonymise
	flagVerbatim
)

// recordHead is the length of the fixed part: version, flags, time of arrival,
// project, request id.
const recordHead = 1 + 1 + 8 + 8 + 16

// Record is one accepted request in the journal: the server's knowledge at the time
// of the answer, then the items of the body, untouched.
type Record struct {
	// ReceivedAt is when the request arrived, to the microsecond.
	ReceivedAt time.Time
	// ProjectID is the project of the request's key.
	ProjectID int64
	// RequestID is random. The uuids of events without one derive from it.
	RequestID [16]byte
	// Historical marks an import (historical_migration).
	Historical bool
	// Anonymise removes the addresses of clients: ClientIP is the zero Addr, and the
	// property $ip is removed.
	Anonymise bool
	// Verbatim marks items of the 2026 protocol, which has stricter rules and
	// options per item.
	Verbatim bool
	// ClientIP is the address of the client, without a zone; the zero Addr if it is
	// unknown or not kept.
	ClientIP netip.Addr
	// SentAt is the client's clock at the time of sending, as the client wrote it;
	// empty if unknown. At most 255 bytes.
	SentAt string
	// DefaultName is the name of events without one; at most 255 bytes. Only the
	// path /engage/ sets it.
	DefaultName string
	// Library is the name and version of the client library, as name/version, that the
	// request states beside its body; at most 255 bytes. Only the 2026 protocol sets it.
	Library string
	// Location is the location of the client's address, in the compact form of
	// core/geoip/location; nothing if it is unknown. It is kept for a project that
	// keeps no addresses, too.
	Location []byte
	// Trace is the trace id and the span id of the request, as a tracing.Origin; zero
	// for a request that is not traced, whose record has no byte of it.
	Trace [24]byte
	// Indexes are the indexes that the items had in the request, as AppendIndex writes
	// them. Items beyond the list have consecutive indexes. Nothing means from 0. Only
	// a part of a request that was divided (Splitter) has them; at most maxIndexBytes.
	Indexes []byte
	// Items is valid JSON: an array of items, or one item.
	Items []byte
}

// ErrRecord is wrapped by each error of ParseRecord.
var ErrRecord = errors.New("not a journal record of this version")

// Append appends the record's bytes to dst.
func (r *Record) Append(dst []byte) []byte {
	var flags byte
	if r.Historical {
		flags |= flagHistorical
	}
	if r.Anonymise {
		flags |= flagAnonymise
	}
	if r.Verbatim {
		flags |= flagVerbatim
	}
	dst = append(dst, r.version(), flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.ReceivedAt.UnixMicro()))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.ProjectID))
	dst = append(dst, r.RequestID[:]...)
	ip := r.ClientIP.AsSlice()
	dst = append(append(dst, byte(len(ip))), ip...)
	dst = appendField(appendField(dst, r.SentAt), r.DefaultName)
	if r.version() != recordVersion {
		dst = appendField(dst, r.Library)
	}
	if r.version() >= locationVersion {
		dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(r.location()))), r.location()...)
	}
	if r.version() == fieldsVersion {
		dst = r.appendFields(dst)
	}
	return append(dst, r.Items...)
}

// appendFields appends the fields with tags.
func (r *Record) appendFields(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.fieldsSize()))
	if r.Trace != [24]byte{} {
		dst = append(append(dst, tagTrace, byte(len(r.Trace))), r.Trace[:]...)
	}
	for rest := r.Indexes; len(rest) > 0; {
		n := min(len(rest), 255)
		dst = append(append(dst, tagIndexes, byte(n)), rest[:n]...)
		rest = rest[n:]
	}
	return dst
}

// fieldsSize is the number of bytes of the fields with tags.
func (r *Record) fieldsSize() (n int) {
	if r.Trace != [24]byte{} {
		n = 2 + len(r.Trace)
	}
	return n + len(r.Indexes) + 2*((len(r.Indexes)+254)/255)
}

func (r *Record) version() byte {
	switch {
	case r.Trace != [24]byte{} || len(r.Indexes) > 0:
		return fieldsVersion
	case len(r.location()) > 0:
		return locationVersion
	case r.Library != "":
		return libraryVersion
	}
	return recordVersion
}

// location returns the location, nothing if it is too long for a record.
func (r *Record) location() []byte {
	if len(r.Location) > 0xffff {
		return nil
	}
	return r.Location
}

// appendField appends the length of s and s, of which it takes 255 bytes.
func appendField(dst []byte, s string) []byte {
	s = s[:min(len(s), 255)]
	return append(append(dst, byte(len(s))), s...)
}

// Size is the number of bytes Append adds.
func (r *Record) Size() int {
	n := recordHead + 3 + r.ClientIP.BitLen()/8 + len(r.SentAt) + len(r.DefaultName) + len(r.Items)
	if r.version() != recordVersion {
		n += 1 + len(r.Library)
	}
	if r.version() >= locationVersion {
		n += 2 + len(r.location())
	}
	if r.version() == fieldsVersion {
		n += 2 + r.fieldsSize()
	}
	return n
}

// ParseRecord parses the bytes of Append. Items, Location and Indexes share memory
// with data. It fails with ErrRecord.
func ParseRecord(data []byte) (Record, error) {
	if len(data) < recordHead || data[0] < recordVersion || data[0] > fieldsVersion {
		return Record{}, fmt.Errorf("%w: %d bytes, starting %x", ErrRecord, len(data), data[:min(len(data), 8)])
	}
	r := Record{
		Historical: data[1]&flagHistorical != 0,
		Anonymise:  data[1]&flagAnonymise != 0,
		Verbatim:   data[1]&flagVerbatim != 0,
		ReceivedAt: time.UnixMicro(int64(binary.BigEndian.Uint64(data[2:]))).UTC(),
		ProjectID:  int64(binary.BigEndian.Uint64(data[10:])),
	}
	copy(r.RequestID[:], data[18:])
	var ip, sentAt, name, library []byte
	var ok bool
	rest := data[recordHead:]
	for _, field := range [...]*[]byte{&ip, &sentAt, &name} {
		if *field, rest, ok = cutField(rest); !ok {
			return Record{}, fmt.Errorf("%w: it ends inside its head", ErrRecord)
		}
	}
	if data[0] != recordVersion {
		if library, rest, ok = cutField(rest); !ok || len(library) == 0 && data[0] == libraryVersion {
			return Record{}, fmt.Errorf("%w: it has no library", ErrRecord)
		}
	}
	if data[0] >= locationVersion {
		if r.Location, rest, ok = cutLongField(rest); !ok || len(r.Location) == 0 && data[0] == locationVersion {
			return Record{}, fmt.Errorf("%w: it has no location", ErrRecord)
		}
	}
	if data[0] == fieldsVersion {
		if rest, ok = r.parseFields(rest); !ok {
			return Record{}, fmt.Errorf("%w: it ends inside its fields", ErrRecord)
		}
	}
	if r.ClientIP, ok = netip.AddrFromSlice(ip); !ok && len(ip) > 0 {
		return Record{}, fmt.Errorf("%w: %d bytes are no address", ErrRecord, len(ip))
	}
	r.SentAt, r.DefaultName, r.Library, r.Items = string(sentAt), string(name), string(library), rest
	return r, nil
}

// cutField cuts a field, which starts with its length, off data.
func cutField(data []byte) (field, rest []byte, ok bool) {
	if len(data) == 0 || len(data) < 1+int(data[0]) {
		return nil, nil, false
	}
	n := 1 + int(data[0])
	return data[1:n], data[n:], true
}

// parseFields parses the fields with tags at the start of data, and returns the rest.
func (r *Record) parseFields(data []byte) (rest []byte, ok bool) {
	fields, rest, ok := cutLongField(data)
	for ok && len(fields) > 0 {
		tag := fields[0]
		var value []byte
		value, fields, ok = cutField(fields[1:])
		switch {
		case ok && tag == tagTrace && len(value) == len(r.Trace):
			copy(r.Trace[:], value)
		case ok && tag == tagIndexes && r.Indexes == nil && len(value) > 0:
			r.Indexes = value[:len(value):len(value)]
		case ok && tag == tagIndexes:
			r.Indexes = append(r.Indexes, value...)
		}
	}
	return rest, ok
}

// cutLongField cuts a field, which starts with its length in two bytes, off data.
func cutLongField(data []byte) (field, rest []byte, ok bool) {
	if len(data) < 2 {
		return nil, nil, false
	}
	n := 2 + int(binary.BigEndian.Uint16(data))
	if n == 2 {
		return nil, data[2:], true
	}
	if len(data) < n {
		return nil, nil, false
	}
	return data[2:n:n], data[n:], true
}
