package journal

import (
	"encoding/binary"
	"errors"
	"time"
)

// maxBlockBytes bounds the data of a block with more than one record, so that a
// small read fetches little extra data.
const maxBlockBytes = 256 << 10

// A block is a run of consecutive records written by one fsync and stored as
// one row. data begins with a table of n little-endian uint32, the end of each
// record counted from the end of the table; the records follow without a gap.
// A block is immutable and may be shared.
type block struct {
	seq  uint64 // of the first record
	n    int
	at   int64 // Unix microseconds, of all its records
	pos  int64 // bytes of record data ever appended before this block
	data []byte
}

var errBlock = errors.New("the table of records does not fit the data")

func (b block) last() uint64    { return b.seq + uint64(b.n) - 1 }
func (b block) time() time.Time { return time.UnixMicro(b.at) }
func (b block) payload() int    { return len(b.data) - 4*b.n }

// end returns the end of record i within the payload; end(-1) is 0.
func (b block) end(i int) int {
	if i < 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b.data[4*i:]))
}

// check reports whether every record lies within the data. The other methods
// rely on it.
func (b block) check() error {
	if b.n <= 0 || b.n > len(b.data)/4 || b.seq == 0 || b.last() < b.seq {
		return errBlock
	}
	before := 0
	for i := range b.n {
		end := b.end(i)
		if end < before || end > b.payload() {
			return errBlock
		}
		before = end
	}
	if before != b.payload() {
		return errBlock
	}
	return nil
}

// newBlock packs records into a block.
func newBlock(seq uint64, at, pos int64, records [][]byte) block {
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
	return block{seq: seq, n: len(records), at: at, pos: pos, data: data}
}

// blockFits reports whether a record of size bytes may join a block that
// already has n records of the given payload.
func blockFits(n, payload, size int) bool {
	return n == 0 || payload+size <= maxBlockBytes
}

// selector selects records of consecutive blocks until a limit is reached, then
// copies them.
type selector struct {
	after      uint64
	maxRecords int
	maxBytes   int

	ranges []recordRange
	count  int
	bytes  int
	full   bool
}

// A piece is records from to to-1 of a block.
type recordRange struct {
	block    block
	from, to int
}

// add selects records of b and reports whether the limits allow more.
func (p *selector) add(b block) bool {
	from := 0
	if p.after >= b.seq {
		from = int(min(p.after-b.seq+1, uint64(b.n)))
	}
	to := from
	for ; to < b.n; to++ {
		size := b.end(to) - b.end(to-1)
		if p.count > 0 && (p.count >= p.maxRecords || p.bytes+size > p.maxBytes) {
			p.full = true
			break
		}
		p.count++
		p.bytes += size
	}
	if to > from {
		p.ranges = append(p.ranges, recordRange{b, from, to})
	}
	return !p.full
}

// records copies the selected records with two allocations.
func (p *selector) records() []Record {
	if p.count == 0 {
		return nil
	}
	out := make([]Record, 0, p.count)
	slab := make([]byte, 0, p.bytes)
	for _, k := range p.ranges {
		start := len(slab)
		base := k.block.end(k.from - 1)
		slab = append(slab, k.block.data[4*k.block.n+base:4*k.block.n+k.block.end(k.to-1)]...)
		at := k.block.time()
		for i := k.from; i < k.to; i++ {
			lo, hi := start+k.block.end(i-1)-base, start+k.block.end(i)-base
			out = append(out, Record{Seq: k.block.seq + uint64(i), At: at, Data: slab[lo:hi:hi]})
		}
	}
	return out
}
