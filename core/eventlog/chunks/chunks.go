// Package chunks keeps ranges of records in memory for the readers of a partition of a log.
package chunks

import (
	"slices"
	"sort"

	"github.com/guidonhq/guidon/core/journal"
)

// Chunk is a range of consecutive records: all with a number above After, through Last.
// Numbers may be missing; a chunk without records is a range in which there are none.
type Chunk struct {
	After, Last uint64
	Records     []journal.Record
	Bytes       int // of the data
}

// Covers reports whether the record that follows a position is in c, or is known to be
// beyond it.
func (c *Chunk) Covers(after uint64) bool { return c.After <= after && after < c.Last }

// From returns the records after a position.
func (c *Chunk) From(after uint64) []journal.Record {
	i := sort.Search(len(c.Records), func(i int) bool { return c.Records[i].Seq > after })
	return c.Records[i:]
}

// Append adds records that follow those of c. Records that c has are left out.
func (c *Chunk) Append(records []journal.Record) {
	for _, r := range records {
		if r.Seq > c.Last {
			c.Records = append(c.Records, r)
			c.Bytes += len(r.Data)
			c.Last = r.Seq
		}
	}
}

// Evict removes the oldest records over a limit of bytes.
func (c *Chunk) Evict(limit int) {
	n := 0
	for ; c.Bytes > limit && n < len(c.Records); n++ {
		c.Bytes -= len(c.Records[n].Data)
		c.After = c.Records[n].Seq
		c.Records[n] = journal.Record{}
	}
	c.Records = c.Records[n:]
}

// Reset makes c empty at a position.
func (c *Chunk) Reset(at uint64) { *c = Chunk{After: at, Last: at} }

// Select returns copies of the first records, at most maxRecords and about maxBytes,
// but at least one. The copies share one allocation.
func Select(records []journal.Record, maxRecords, maxBytes int) []journal.Record {
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

// Add keeps a fetched range in place of the oldest ones, above maxBytes or maxChunks.
func Add(chunks []*Chunk, c *Chunk, maxChunks, maxBytes int) []*Chunk {
	chunks = append(chunks, c)
	bytes := 0
	for _, k := range chunks {
		bytes += k.Bytes
	}
	for len(chunks) > 1 && (len(chunks) > maxChunks || bytes > maxBytes) {
		bytes -= chunks[0].Bytes
		chunks[0] = nil
		chunks = chunks[1:]
	}
	return chunks
}
