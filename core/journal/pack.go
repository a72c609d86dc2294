package journal

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
)

// How a block's data is stored. Requests are JSON and the records of a block
// are alike: S2 makes them several times smaller for a third of the time that
// writing the difference twice (log, then main file) would take.
const (
	plain      = 0
	compressed = 1
)

// packLeast is the size from which compression is tried: smaller data fits into
// one page.
const packLeast = 4 << 10

// packKeep bounds the memory that a packer keeps after a huge record.
const packKeep = 1 << 20

// unpackMost is larger than any block.
const unpackMost = 1 << 30

var (
	errUnpack   = errors.New("the compressed data cannot be read")
	errChecksum = errors.New("the checksum does not fit the data")
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// A packer compresses data. It reuses its memory: a result is valid until the
// next call.
type packer struct{ scratch []byte }

// pack returns data itself when compression does not make it an eighth
// smaller.
func (p *packer) pack(data []byte) (form int, stored []byte) {
	if len(data) < packLeast {
		return plain, data
	}
	stored = s2.Encode(p.scratch, data)
	if cap(stored) <= packKeep {
		p.scratch = stored[:0]
	}
	if len(stored) > len(data)/8*7 {
		return plain, data
	}
	return compressed, stored
}

// unpack verifies stored data and returns an uncompressed copy.
func unpack(form int, sum uint32, stored []byte) ([]byte, error) {
	if checksum(stored) != sum {
		return nil, errChecksum
	}
	switch form {
	case plain:
		return append([]byte(nil), stored...), nil
	case compressed:
		if n, err := s2.DecodedLen(stored); err != nil || n > unpackMost {
			return nil, errUnpack
		}
		return s2.Decode(nil, stored)
	default:
		return nil, fmt.Errorf("form %d of the data is not known", form)
	}
}
