package kafka

import (
	"slices"
	"sort"

	"github.com/guidonhq/guidon/core/journal"
)

// chunk is a range of consecutive records: all with a number above after, through last.
// Numbers may be missing; a chunk without records is a range in which there are none.
type chunk struct {
	after, last uint64
	records     []journal.Record
	bytes       int
}

// covers reports whether the record that follows a position is in c, or is known to be
// beyond it.
func (c *chunk) covers(after uint64) bool { return c.after <= after && after < c.last }

// from returns the records after a position.
func (c *chunk) from(after uint64) []journal.Record {
	i := sort.Search(len(c.records), func(i int) bool { return c.records[i].Seq > after })
	return c.records[i:]
}

// append adds records that follow those of c. Records that c has are left out.
func (c *chunk) append(records []journal.Record) {
	for _, r := range records {
		if r.Seq > c.last {
			c.records = append(c.records, r)
			c.bytes += len(r.Data)
			c.last = r.Seq
		}
	}
}

// evict removes the oldest records over a limit of bytes.
func (c *chunk) evict(limit int) {
	n := 0
	for ; c.bytes > limit && n < len(c.records); n++ {
		c.bytes -= len(c.records[n].Data)
		c.after = c.records[n].Seq
		c.records[n] = journal.Record{}
	}
	c.records = c.records[n:]
}

// reset makes c empty at a position.
func (c *chunk) reset(at uint64) { *c = chunk{after: at, last: at} }

// selectRecords returns copies of the first records, at most maxRecords and about maxBytes,
// but at least one. The copies share one allocation.
func selectRecords(records []journal.Record, maxRecords, maxBytes int) []journal.Record {
	n, size := 0, 0
	for n < len(records) && (n == 0 || n < maxRecords && size+len(records[n].Data) <= maxBytes) {
		size += len(records[n].Data)
		n++
	}
	out, data := slices.Clone(records[:n]), make([]byte, 0, size)
	for i := range out {
		start := len(data)
		data = append(data, out[i].Data...)
		out[i].Data = data[start:len(data):len(data)]
	}
	return out
}

// aheadBytes and aheadChunks bound what direct fetches keep of a partition, for the reads
// that follow.
const (
	aheadBytes  = 8 << 20
	aheadChunks = 8
)

// addChunk keeps a fetched range in place of the oldest ones.
func addChunk(chunks []*chunk, c *chunk) []*chunk {
	chunks = append(chunks, c)
	bytes := 0
	for _, k := range chunks {
		bytes += k.bytes
	}
	for len(chunks) > 1 && (len(chunks) > aheadChunks || bytes > aheadBytes) {
		bytes -= chunks[0].bytes
		chunks[0] = nil
		chunks = chunks[1:]
	}
	return chunks
}
