package pglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/guidonhq/guidon/core/journal"
)

// The content of a row is a byte for the compression, the CRC-32C of what follows, the
// length of the data as a uvarint, and the data, compressed. The data is each record
// with its length before it, as a uvarint.
const (
	codecNone = iota
	codecLZ4
	codecZstd
	codecSnappy
)

// compressions are the settings, in the order of the codecs.
var compressions = []string{"none", "lz4", "zstd", "snappy"}

const (
	rowHeader = 1 + crc32.Size
	// maxRowBytes is the most data of a row before compression. Only a record that is
	// larger than rowBytes makes a row large.
	maxRowBytes = 256<<20 + rowBytes
	// maxRatio is the most that lz4 compresses; snappy compresses less, zstd may more.
	maxRatio = 256
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errRow     = errors.New("the row is damaged")
)

// encoder makes rows. It is used by one goroutine at a time.
type encoder struct {
	codec byte
	lz4   lz4.Compressor
	zstd  *zstd.Encoder
	data  []byte
}

func newEncoder(compression string) (*encoder, error) {
	e := &encoder{codec: byte(slices.Index(compressions, compression))}
	if e.codec == codecZstd {
		var err error
		if e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// row returns the content of a row with records.
func (e *encoder) row(records [][]byte) ([]byte, error) {
	e.data = e.data[:0]
	for _, r := range records {
		e.data = binary.AppendUvarint(e.data, uint64(len(r)))
		e.data = append(e.data, r...)
	}
	out := make([]byte, rowHeader, rowHeader+binary.MaxVarintLen64+e.bound())
	out = binary.AppendUvarint(out, uint64(len(e.data)))
	plain := len(out)
	out[0] = e.codec
	var err error
	switch e.codec {
	case codecLZ4:
		var n int
		n, err = e.lz4.CompressBlock(e.data, out[plain:cap(out)])
		out = out[:plain+n]
	case codecZstd:
		out = e.zstd.EncodeAll(e.data, out)
	case codecSnappy:
		out = out[:plain+len(s2.EncodeSnappy(out[plain:cap(out)], e.data))]
	}
	if err != nil {
		return nil, err
	}
	if size := len(out) - plain; size == 0 || size >= len(e.data) {
		out = append(out[:plain], e.data...)
		out[0] = codecNone
	}
	binary.BigEndian.PutUint32(out[1:], crc32.Checksum(out[rowHeader:], castagnoli))
	if cap(e.data) > 4*rowBytes {
		e.data = nil
	}
	return out, nil
}

// bound is the most that the compressed data can take.
func (e *encoder) bound() int {
	n := len(e.data)
	return max(n, lz4.CompressBlockBound(n), s2.MaxEncodedLen(n))
}

var zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxRowBytes))

// decodeRow returns the records of a row, of which the newest has the number last. The
// records share the memory of one another, not that of content.
func decodeRow(content []byte, last int64, count int, at time.Time) ([]journal.Record, error) {
	data, err := rowData(content)
	if err != nil {
		return nil, err
	}
	if count <= 0 || count > len(data) || last < int64(count) {
		return nil, fmt.Errorf("%w: %d records through %d in %d bytes", errRow, count, last, len(data))
	}
	out := make([]journal.Record, 0, count)
	for i := range count {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, fmt.Errorf("%w: record %d of %d is longer than the row", errRow, i+1, count)
		}
		end := n + int(size)
		out = append(out, journal.Record{Seq: uint64(last) - uint64(count-1-i), At: at, Data: data[n:end:end]})
		data = data[end:]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after its records", errRow, len(data))
	}
	return out, nil
}

// rowData returns the data of a row without compression.
func rowData(content []byte) ([]byte, error) {
	if len(content) < rowHeader {
		return nil, fmt.Errorf("%w: it has %d bytes", errRow, len(content))
	}
	if crc32.Checksum(content[rowHeader:], castagnoli) != binary.BigEndian.Uint32(content[1:]) {
		return nil, fmt.Errorf("%w: the checksum differs", errRow)
	}
	size, n := binary.Uvarint(content[rowHeader:])
	if n <= 0 || size > maxRowBytes {
		return nil, fmt.Errorf("%w: no length", errRow)
	}
	body := content[rowHeader+n:]
	if content[0] != codecZstd && size > uint64(maxRatio*len(body)) {
		return nil, fmt.Errorf("%w: %d bytes cannot be %d", errRow, len(body), size)
	}
	data := make([]byte, 0, min(size, uint64(maxRatio*len(body))))
	var err error
	switch content[0] {
	case codecNone:
		data = append(data, body...)
	case codecLZ4:
		var written int
		written, err = lz4.UncompressBlock(body, data[:size])
		data = data[:max(0, written)]
	case codecZstd:
		data, err = zstdDecoder.DecodeAll(body, data)
	case codecSnappy:
		if length, bad := s2.DecodedLen(body); bad != nil || uint64(length) != size {
			return nil, fmt.Errorf("%w: another length", errRow)
		}
		data, err = s2.Decode(data[:size], body)
	default:
		return nil, fmt.Errorf("%w: unknown compression %d", errRow, content[0])
	}
	if err != nil || uint64(len(data)) != size {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d: %w", errRow, len(data), size, errors.Join(err))
	}
	return data, nil
}
