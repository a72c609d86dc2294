package event

import (
	"cmp"
	"slices"

	"github.com/guidonhq/guidon/core/jsontext"
)

// Splitter divides records of requests into one record a partition. All events of one
// distinct id come into one partition, in their order, and keep the index that they
// had in the request: decoding the parts gives the events of the whole, with the same
// uuids. It holds scratch memory only and is for one goroutine.
type Splitter struct {
	partition func(projectID int64, distinctID string) int
	scan      jsontext.Scanner
	ev        item
	props     properties
	items     []splitItem
	indexes   []byte
	parts     []Part
	ends      []int // of parts, in the buffer
}

// splitItem is an item of a record.
type splitItem struct {
	start, end uint32 // in the items
	index      uint32
	partition  int32
}

const splitItemSize = 16

// Part is the record of a partition, as bytes.
type Part struct {
	Partition int
	Data      []byte
}

// NewSplitter returns a Splitter. partition returns the partition of a distinct id,
// which it must not keep.
func NewSplitter(partition func(projectID int64, distinctID string) int) *Splitter {
	return &Splitter{partition: partition}
}

// Split appends the bytes of the parts of rec to buf, and returns the parts, which are
// valid until the next call, and the longer buffer. The parts are in the order of
// their partitions; a partition has several, in the order of their items, if the
// indexes of the items do not fit into one record. Items without a distinct id are in
// the partition of the first item with one. Items that are not valid JSON are not
// divided.
func (s *Splitter) Split(rec *Record, buf []byte) ([]Part, []byte) {
	s.parts, s.ends = s.parts[:0], s.ends[:0]
	begin := len(buf)
	if first, several := s.readItems(rec); several {
		slices.SortStableFunc(s.items, func(a, b splitItem) int { return cmp.Compare(a.partition, b.partition) })
		buf = slices.Grow(buf, len(rec.Items)+len(rec.Items)/8+256)
		for rest := s.items; len(rest) > 0; {
			buf, rest = s.appendPart(buf, rec, rest)
		}
	} else {
		buf = rec.Append(buf)
		s.parts, s.ends = append(s.parts, Part{Partition: first}), append(s.ends, len(buf))
	}
	for i, end := range s.ends {
		s.parts[i].Data = buf[begin:end:end]
		begin = end
	}
	return s.parts, buf
}

// Scratch returns the bytes of memory that the Splitter keeps for the next record.
func (s *Splitter) Scratch() int { return cap(s.items)*splitItemSize + cap(s.indexes) }

// unknownPartition is the partition of an item without a distinct id, at first.
const unknownPartition = -1

// readItems finds the items and their partitions. It returns the partition of the
// first item with a distinct id, and whether the items belong to several partitions.
func (s *Splitter) readItems(rec *Record) (first int, several bool) {
	s.items = s.items[:0]
	s.scan.Reset(rec.Items)
	if s.scan.Peek() != '[' {
		if first = s.readItem(rec); first == unknownPartition {
			first = s.partition(rec.ProjectID, "")
		}
		return first, false
	}
	first = unknownPartition
	next, indexes := uint32(0), rec.Indexes
	s.scan.Open()
	for begin := true; s.scan.Element(begin); begin = false {
		next, indexes = nextIndex(next, indexes)
		s.scan.Peek() // moves over spaces
		it := splitItem{start: uint32(s.scan.Pos), index: next}
		it.partition = int32(s.readItem(rec))
		it.end = uint32(s.scan.Pos)
		next++
		s.items = append(s.items, it)
		if first == unknownPartition {
			first = int(it.partition)
		}
	}
	if first == unknownPartition {
		first = s.partition(rec.ProjectID, "")
	}
	for i := range s.items {
		if s.items[i].partition == unknownPartition {
			s.items[i].partition = int32(first)
		}
		several = several || int(s.items[i].partition) != first
	}
	return first, several && s.scan.End()
}

// readItem returns the partition of the item at the cursor.
func (s *Splitter) readItem(rec *Record) int {
	if s.scan.Peek() != '{' {
		s.scan.Skip()
		return unknownPartition
	}
	s.ev.reset(0)
	s.props.reset()
	s.ev.readFields(&s.scan, &s.props)
	id, _ := findDistinctID(&s.ev, &s.props)
	if s.scan.Bad || id == "" {
		return unknownPartition
	}
	return s.partition(rec.ProjectID, FirstChars(id, MaxChars))
}

// appendPart appends the record of the first items, which are of one partition, and
// returns the items that are left.
func (s *Splitter) appendPart(buf []byte, rec *Record, items []splitItem) (longer []byte, rest []splitItem) {
	n, next := 0, uint32(0)
	s.indexes = s.indexes[:0]
	consecutive := true
	for n < len(items) && items[n].partition == items[0].partition && len(s.indexes) < maxIndexBytes {
		consecutive = consecutive && items[n].index == next
		s.indexes = AppendIndex(s.indexes, next, items[n].index)
		next = items[n].index + 1
		n++
	}
	part := *rec
	part.Items, part.Indexes = nil, s.indexes
	if consecutive {
		part.Indexes = nil
	}
	buf = part.Append(buf)
	for i := range items[:n] {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		buf = append(append(buf, separator), rec.Items[items[i].start:items[i].end]...)
	}
	buf = append(buf, ']')
	s.parts, s.ends = append(s.parts, Part{Partition: int(items[0].partition)}), append(s.ends, len(buf))
	return buf, items[n:]
}
