package event

import (
	"encoding/binary"
	"math"
)

// maxIndexBytes bounds the indexes of a record, whose fields have at most 65,535
// bytes together.
const maxIndexBytes = 60_000

// AppendIndex appends the index of an item to a list of ascending indexes. next is
// the last index plus one, 0 at first.
func AppendIndex(list []byte, next, index uint32) []byte {
	return binary.AppendUvarint(list, uint64(index-next))
}

// nextIndex cuts an index off a list. next is the index before it plus one. A list
// that has ended or cannot be read leaves the index at next.
func nextIndex(next uint32, list []byte) (index uint32, rest []byte) {
	if len(list) == 0 {
		return next, nil
	}
	gap, n := binary.Uvarint(list)
	if n <= 0 || gap > math.MaxUint32-1-uint64(next) {
		return next, nil
	}
	return next + uint32(gap), list[n:]
}
