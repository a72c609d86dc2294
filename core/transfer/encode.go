package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// kind is the type of a column in the binary format of COPY.
type kind int

const (
	kindInt4 kind = iota
	kindInt8
	kindBool
	kindText
	kindBytes
	kindUUID
	kindFloat
)

// kinds are the kinds by the name of the type in PostgreSQL.
var kinds = map[string]kind{
	"int4": kindInt4, "int8": kindInt8, "bool": kindBool, "text": kindText, "bytea": kindBytes, "uuid": kindUUID, "float8": kindFloat,
}

// column is a column of a table, in both databases.
type column struct {
	name string
	kind kind
}

// Frames of the binary format of COPY, see
// https://www.postgresql.org/docs/current/sql-copy.html ("Binary Format").
var (
	copyHeader  = append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	copyTrailer = []byte{0xff, 0xff}
)

// batch is a number of rows of one table in the binary format of COPY.
type batch struct {
	data     []byte
	rows     int64
	skipped  int64  // left out
	sum      uint64 // of the checksums of the rows
	replaced int64  // texts that PostgreSQL refuses and that were changed
	last     rowKey // of the last row that was read, also of one that was left out
}

func (b *batch) reset() {
	*b = batch{data: append(b.data[:0], copyHeader...)}
}

// add appends a row. After an error the batch is as before.
func (b *batch) add(columns []column, values []any) error {
	start, replaced := len(b.data), int64(0)
	data := binary.BigEndian.AppendUint16(b.data, uint16(len(columns)))
	for i, c := range columns {
		var changed bool
		var err error
		if data, changed, err = appendField(data, c.kind, values[i]); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		if changed {
			replaced++
		}
	}
	b.data = data
	b.rows++
	b.replaced += replaced
	b.sum += rowChecksum(data[start:])
	return nil
}

// rowChecksum is the checksum of a row in the binary format. The checksum of a table is
// the sum of those of its rows, which does not depend on their order.
func rowChecksum(row []byte) uint64 { return xxhash.Sum64(row) }

// appendField appends a value with its length. changed reports that a text was changed.
func appendField(dst []byte, k kind, v any) (out []byte, changed bool, err error) {
	if v == nil {
		return binary.BigEndian.AppendUint32(dst, math.MaxUint32), false, nil
	}
	switch k {
	case kindText:
		return appendText(dst, v)
	case kindBytes, kindUUID:
		out, err = appendBytes(dst, k, v)
	case kindFloat:
		out, err = appendFloat(dst, v)
	default:
		out, err = appendInt(dst, k, v)
	}
	return out, false, err
}

func appendText(dst []byte, v any) ([]byte, bool, error) {
	s, ok := v.(string)
	if b, isBytes := v.([]byte); isBytes {
		s, ok = string(b), true
	}
	if !ok {
		return nil, false, wrongType(v, "a text")
	}
	changed := !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0
	if changed {
		s = storable(s)
	}
	return append(appendLength(dst, len(s)), s...), changed, nil
}

// storable replaces what a text of PostgreSQL cannot hold, as the event store does.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func appendBytes(dst []byte, k kind, v any) ([]byte, error) {
	b, ok := v.([]byte)
	if s, isText := v.(string); isText {
		b, ok = []byte(s), true
	}
	switch {
	case !ok:
		return nil, wrongType(v, "bytes")
	case k == kindUUID && len(b) != 16:
		return nil, fmt.Errorf("a UUID has 16 bytes, not %d", len(b))
	}
	return append(appendLength(dst, len(b)), b...), nil
}

func appendFloat(dst []byte, v any) ([]byte, error) {
	f, ok := v.(float64)
	if n, isInt := v.(int64); isInt {
		f, ok = float64(n), true
	}
	if !ok {
		return nil, wrongType(v, "a number")
	}
	return binary.BigEndian.AppendUint64(appendLength(dst, 8), math.Float64bits(f)), nil
}

var errRange = errors.New("the number is out of range")

func appendInt(dst []byte, k kind, v any) ([]byte, error) {
	n, ok := v.(int64)
	if b, isBool := v.(bool); isBool {
		n, ok = 0, true
		if b {
			n = 1
		}
	}
	if !ok {
		return nil, wrongType(v, "an integer")
	}
	if k == kindInt8 {
		return binary.BigEndian.AppendUint64(appendLength(dst, 8), uint64(n)), nil
	}
	if k == kindBool && n != 0 && n != 1 || n < math.MinInt32 || n > math.MaxInt32 {
		return nil, errRange
	}
	if k == kindBool {
		return append(appendLength(dst, 1), byte(n)), nil
	}
	return binary.BigEndian.AppendUint32(appendLength(dst, 4), uint32(int32(n))), nil
}

func appendLength(dst []byte, n int) []byte { return binary.BigEndian.AppendUint32(dst, uint32(n)) }

func wrongType(v any, want string) error { return fmt.Errorf("the value is a %T, not %s", v, want) }

// checksummer computes the count and the checksum of the rows in a stream of the binary
// format of COPY.
type checksummer struct {
	pending []byte
	started bool
	ended   bool
	rows    int64
	sum     uint64
}

var errStream = errors.New("unexpected data in the rows of PostgreSQL")

// Write reads a part of the stream.
func (c *checksummer) Write(p []byte) (int, error) {
	data := p
	if len(c.pending) > 0 {
		c.pending = append(c.pending, p...)
		data = c.pending
	}
	rest, err := c.read(data)
	if err != nil {
		return 0, err
	}
	c.pending = append(c.pending[:0], rest...)
	return len(p), nil
}

// read consumes whole rows and returns the rest.
func (c *checksummer) read(data []byte) (rest []byte, err error) {
	if !c.started {
		if len(data) < len(copyHeader) {
			return data, nil
		}
		if !strings.HasPrefix(string(data[:len(copyHeader)]), string(copyHeader[:11])) {
			return nil, errStream
		}
		data, c.started = data[len(copyHeader):], true
	}
	for len(data) >= 2 && !c.ended {
		if fields := binary.BigEndian.Uint16(data); fields == math.MaxUint16 {
			c.ended, data = true, data[2:]
			break
		}
		n := rowLength(data)
		if n == 0 {
			break
		}
		c.rows++
		c.sum += rowChecksum(data[:n])
		data = data[n:]
	}
	return data, nil
}

// rowLength returns the length of the row at the begin of data, 0 if it is not complete.
func rowLength(data []byte) int {
	at := 2
	for range binary.BigEndian.Uint16(data) {
		if len(data) < at+4 {
			return 0
		}
		n := int(int32(binary.BigEndian.Uint32(data[at:])))
		at += 4 + max(n, 0)
	}
	if len(data) < at {
		return 0
	}
	return at
}
