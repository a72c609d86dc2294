package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
)

// NewReader returns a Reader of the rows in r.
func NewReader(r io.Reader) *Reader { return &Reader{Reader: bufio.NewReaderSize(r, 64<<10)} }

// Reader reads RowBinary. After an error all values are zero, and Err has it.
type Reader struct {
	*bufio.Reader
	Err error
	buf [16]byte
}

// maxValue is the longest string that is read.
const maxValue = 256 << 20

var errLongValue = errors.New("a value in the answer is too long")

// More reports whether a row follows.
func (r *Reader) More() bool {
	if r.Err != nil {
		return false
	}
	if _, err := r.Peek(1); err != nil {
		if err != io.EOF { //nolint:errorlint // Peek does not wrap it
			r.Err = err
		}
		return false
	}
	return true
}

func (r *Reader) fixed(n int) []byte {
	if r.Err == nil {
		if _, err := io.ReadFull(r, r.buf[:n]); err != nil {
			r.fail(err)
		}
	}
	if r.Err != nil {
		clear(r.buf[:])
	}
	return r.buf[:n]
}

func (r *Reader) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.Err = fmt.Errorf("read the answer: %w", err)
}

// Int reads an Int64.
func (r *Reader) Int() int64 { return int64(binary.LittleEndian.Uint64(r.fixed(8))) }

// Day reads an Int32.
func (r *Reader) Day() int64 { return int64(int32(binary.LittleEndian.Uint32(r.fixed(4)))) }

// Byte reads a UInt8.
func (r *Reader) Byte() byte { return r.fixed(1)[0] }

// String reads a String.
func (r *Reader) String() string { return string(r.Bytes(nil)) }

// Bytes reads a string into the memory of dst.
func (r *Reader) Bytes(dst []byte) []byte {
	if r.Err != nil {
		return nil
	}
	n, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
		r.fail(err)
		return nil
	case n > maxValue:
		r.Err = errLongValue
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

// UUID reads a UUID.
func (r *Reader) UUID() (id uuid.UUID) {
	b := r.fixed(16)
	binary.BigEndian.PutUint64(id[:8], binary.LittleEndian.Uint64(b[:8]))
	binary.BigEndian.PutUint64(id[8:], binary.LittleEndian.Uint64(b[8:16]))
	return id
}
