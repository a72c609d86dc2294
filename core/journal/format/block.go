package format

import (
	"encoding/binary"
	"errors"
	"time"
)

// maxBlockBytes bounds the data of a block with more than one record, so that a
// small read fetches little extra data.
const maxBlockBytes = 256 << 10

// Block is a run of consecutive records written by one fsync and stored as
// one row. data begins with a table of n little-endian uint32, the end of each
// record counted from the end of the table; the records follow without a gap.
// A block is immutable and may be shared.
type Block struct {
	Seq  uint64 // of the first record
	N    int
	At   int64 // Unix microseconds, of all its records
	Pos  int64 // bytes of record data ever appended before this block
	Data []byte
}

// ErrBlock is the error of a block whose table of records does not fit.
var ErrBlock = errors.New("the table of records does not fit the data")

// Last returns the number of the last record.
func (b Block) Last() uint64 { return b.Seq + uint64(b.N) - 1 }

// Time returns the time of the records.
func (b Block) Time() time.Time { return time.UnixMicro(b.At) }

// Payload returns the bytes of record data.
func (b Block) Payload() int { return len(b.Data) - 4*b.N }

// End returns the end of record i within the payload; End(-1) is 0.
func (b Block) End(i int) int {
	if i < 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b.Data[4*i:]))
}

// Check reports whether every record lies within the data. The other methods
// rely on it.
func (b Block) Check() error {
	if b.N <= 0 || b.N > len(b.Data)/4 || b.Seq == 0 || b.Last() < b.Seq {
		return ErrBlock
	}
	before := 0
	for i := range b.N {
		end := b.End(i)
		if end < before || end > b.Payload() {
			return ErrBlock
		}
		before = end
	}
	if before != b.Payload() {
		return ErrBlock
	}
	return nil
}

// NewBlock packs records into a block.
func NewBlock(seq uint64, at, pos int64, records [][]byte) Block {
	size := 4 * len(records)
	for _, r := range records {
		size += len(r)
	}
	data := make([]byte, 4*len(records), size)
	end := 0
	for i, r := range records {
		end += len(r)
		binary.LittleEndian.PutUint32(data[4*i:], uint32(end))
		data = append(data, r...)
	}
	return Block{Seq: seq, N: len(records), At: at, Pos: pos, Data: data}
}

// Fits reports whether a record of size bytes may join a block that
// already has n records of the given payload.
func Fits(n, payload, size int) bool {
	return n == 0 || payload+size <= maxBlockBytes
}
