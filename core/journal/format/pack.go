package format

import (
	"encoding/binary"
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

	// Headed is added to either form when the checksum covers the other columns
	// of the row, too: blocks of layout 2.
	Headed = 2
)

// packLeast is the size from which compression is tried: smaller data fits into
// one page.
const packLeast = 4 << 10

// packKeep bounds the memory that a packer keeps after a huge record.
const packKeep = 1 << 20

// unpackMost is larger than any block.
const unpackMost = 1 << 30

// The errors of Unpack.
var (
	ErrUnpack   = errors.New("the compressed data cannot be read")
	ErrChecksum = errors.New("the checksum does not fit the data")
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// Packer compresses data. It reuses its memory: a result is valid until the
// next call.
type Packer struct {
	scratch []byte
	header  [headerBytes]byte
}

// Pack returns data itself when compression does not make it an eighth
// smaller.
func (p *Packer) Pack(data []byte) (form int, stored []byte) {
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

// headerBytes is the length of a header: the columns of a row beside its data.
const headerBytes = 5 * 8

// fillHeader writes the columns of a block that its checksum covers.
func fillHeader(h *[headerBytes]byte, b Block, payload int64) {
	for i, v := range [5]uint64{b.Seq, uint64(b.N), uint64(b.At), uint64(b.Pos), uint64(payload)} {
		binary.LittleEndian.PutUint64(h[8*i:], v)
	}
}

// Seal returns the form and the checksum of a block with this stored data.
func (p *Packer) Seal(b Block, form int, stored []byte) (sealed int, sum uint32) {
	fillHeader(&p.header, b, int64(b.Payload()))
	return form | Headed, crc32.Update(checksum(p.header[:]), castagnoli, stored)
}

// Unpack verifies stored data, with the header if the form covers it, and
// returns an uncompressed copy.
func Unpack(form int, sum uint32, header, stored []byte) ([]byte, error) {
	if form&Headed == 0 {
		header = nil
	}
	if crc32.Update(checksum(header), castagnoli, stored) != sum {
		return nil, ErrChecksum
	}
	return Decompress(form, stored)
}

// Decompress returns an uncompressed copy of stored data.
func Decompress(form int, stored []byte) ([]byte, error) {
	switch form &^ Headed {
	case plain:
		return append([]byte(nil), stored...), nil
	case compressed:
		if n, err := s2.DecodedLen(stored); err != nil || n > unpackMost {
			return nil, ErrUnpack
		}
		return s2.Decode(nil, stored)
	default:
		return nil, fmt.Errorf("%w: its form %d is not known", ErrUnpack, form)
	}
}
