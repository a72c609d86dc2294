// Package rowcodec compresses the properties of stored events one row at a time.
//
// A row of a few hundred bytes has little to repeat in itself, so that a general
// compressor needs a dictionary: text that rows of a project have in common. S2
// with a dictionary takes a few microseconds to write a row and one to read it;
// docs/decisions/0071-smaller-rows.md compares it with zstd.
//
// Identifiers are most of what is left then. A UUID in a string is therefore
// replaced by its 16 bytes before the compression, and a string that equals the
// distinct id or the URL in another column of the row by a reference to it.
//
// A stored row is the byte 1, the id of the dictionary as a varint, and a block of
// S2. JSON never begins with the byte 1, so both forms can be in one column. The
// decoder trusts no length: it allocates at most MaxPlain bytes.
//
// Dictionaries outlive the rows that they are made from. Train therefore takes only
// text that several persons have in common.
package rowcodec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// MaxPlain is the length of the longest properties that are compressed, in bytes.
const MaxPlain = 1 << 20

// format is the first byte of a compressed row.
const format = 1

// Errors of damaged rows. Decode returns them wrapped.
var (
	ErrDamaged    = errors.New("compressed properties are damaged")
	ErrDictionary = errors.New("not a dictionary of compressed properties")
)

// Columns are values of other columns of the row. Decode needs the same as Encode.
type Columns struct {
	DistinctID []byte
	URL        []byte // empty without one
}

// Dictionary compresses and decompresses rows. It is safe for concurrent use.
type Dictionary struct {
	id   int64
	dict *s2.Dict
}

// NewDictionary returns the dictionary with the bytes that Train returned. The id is
// positive. It fails with ErrDictionary for other bytes.
func NewDictionary(id int64, content []byte) (*Dictionary, error) {
	d := s2.NewDict(bytes.Clone(content))
	if d == nil || id <= 0 {
		return nil, ErrDictionary
	}
	return &Dictionary{id, d}, nil
}

// ID returns the id of the dictionary.
func (d *Dictionary) ID() int64 { return d.id }

// IsCompressed reports whether the value of a column is in the form of Encode.
func IsCompressed(stored []byte) bool { return len(stored) > 0 && stored[0] == format }

// DictionaryOf returns the id of the dictionary of a compressed row.
func DictionaryOf(stored []byte) (int64, error) {
	id, _, err := splitHeader(stored)
	return id, err
}

func splitHeader(stored []byte) (id int64, block []byte, err error) {
	if !IsCompressed(stored) {
		return 0, nil, fmt.Errorf("%w: unknown format", ErrDamaged)
	}
	n, size := binary.Uvarint(stored[1:])
	if size <= 0 || n == 0 || n > 1<<62 {
		return 0, nil, fmt.Errorf("%w: no id of a dictionary", ErrDamaged)
	}
	return int64(n), stored[1+size:], nil
}

// Buffer is memory that Encode and Decode use again. The zero value is ready. One
// goroutine uses it at a time.
type Buffer struct{ replaced, block []byte }

// Encode appends the compressed form of plain to dst. It returns false and dst if that
// would not be shorter or plain is not suitable: longer than MaxPlain, or with control
// characters that JSON does not have.
func (d *Dictionary) Encode(dst, plain []byte, c Columns, b *Buffer) ([]byte, bool) {
	if len(plain) > MaxPlain {
		return dst, false
	}
	var ok bool
	if b.replaced, ok = appendReplaced(b.replaced[:0], plain, c); !ok {
		return dst, false
	}
	if most := s2.MaxEncodedLen(len(b.replaced)); cap(b.block) < most {
		b.block = make([]byte, most)
	}
	block := d.dict.Encode(b.block[:cap(b.block)], b.replaced)
	start := len(dst)
	out := append(binary.AppendUvarint(append(dst, format), uint64(d.id)), block...)
	if len(out)-start >= len(plain) {
		return out[:start], false
	}
	return out, true
}

// Decode appends the plain form of stored, which this dictionary has compressed, to dst.
// It fails with ErrDamaged for anything else.
func (d *Dictionary) Decode(dst, stored []byte, c Columns, b *Buffer) ([]byte, error) {
	id, block, err := splitHeader(stored)
	if err != nil {
		return dst, err
	}
	if id != d.id {
		return dst, fmt.Errorf("%w: they need dictionary %d, not %d", ErrDamaged, id, d.id)
	}
	n, err := s2.DecodedLen(block)
	if err != nil || n > MaxPlain {
		return dst, fmt.Errorf("%w: bad length", ErrDamaged)
	}
	if cap(b.replaced) < n {
		b.replaced = make([]byte, n)
	}
	replaced, err := d.dict.Decode(b.replaced[:0], block)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return appendRestored(dst, replaced, c)
}
