package kafka_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/guidonhq/guidon/core/eventlog/kafka"
)

// batchHeader is the length of a batch before its records; its checksum covers what
// follows the first 21 bytes.
const (
	batchHeader   = 61
	batchChecksum = 17
)

// batch encodes records from an offset on, as a broker stores them.
func batch(offset int64, attributes int16, values ...string) []byte {
	b := kmsg.RecordBatch{FirstOffset: offset, PartitionLeaderEpoch: 1, Magic: 2, Attributes: attributes, LastOffsetDelta: int32(len(values) - 1), ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(len(values))}
	for i, v := range values {
		r := kmsg.Record{OffsetDelta: int32(i), Value: []byte(v)}
		without := r.AppendTo(nil) // with the length 0, which takes a byte
		r.Length = int32(len(without) - 1)
		b.Records = r.AppendTo(b.Records)
	}
	b.Length = int32(batchHeader - 12 + len(b.Records))
	return withChecksum(b.AppendTo(nil))
}

// withChecksum corrects the length and the checksum of the first batch.
func withChecksum(raw []byte) []byte {
	if len(raw) < batchHeader {
		return raw
	}
	size := int(int32(binary.BigEndian.Uint32(raw[8:])))
	if size < batchHeader-12 || size > len(raw)-12 {
		size = len(raw) - 12
		binary.BigEndian.PutUint32(raw[8:], uint32(size))
	}
	binary.BigEndian.PutUint32(raw[batchChecksum:], crc32.Checksum(raw[batchChecksum+4:12+size], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// FuzzBatches decodes any batches with a right checksum, as of a broker that is broken:
// no record comes twice or in front of the position, and the next position is not before
// the records.
func FuzzBatches(f *testing.F) {
	f.Add(batch(0, 0, "first", "", "third"), uint64(0), int64(3))
	f.Add(batch(0, 0, "first", "second", "third"), uint64(2), int64(3))
	f.Add(append(batch(5, 0, "a"), batch(9, 0, "b", "c")...), uint64(5), int64(11))
	f.Add(batch(7, 0x20, "control"), uint64(7), int64(8)) // of a transaction: no record
	f.Add(batch(1, 3, "not lz4"), uint64(0), int64(2))
	f.Add([]byte{}, uint64(0), int64(1))
	f.Fuzz(func(t *testing.T, raw []byte, after uint64, end int64) {
		if after > 1<<62 {
			return
		}
		numbers, last, err := kafka.KeepBatches(withChecksum(raw), after, end)
		if err != nil {
			return
		}
		before := after
		for _, n := range numbers {
			if n <= before {
				t.Errorf("record %d follows %d", n, before)
			}
			before = n
		}
		if last < before {
			t.Errorf("the next position is %d, before record %d", last, before)
		}
	})
}

// TestBatches checks that the seeds of FuzzBatches are what the decoder reads.
func TestBatches(t *testing.T) {
	t.Parallel()
	numbers, last, err := kafka.KeepBatches(append(batch(5, 0, "a"), batch(9, 0, "b", "c")...), 5, 11)
	if err != nil || len(numbers) != 3 || numbers[0] != 6 || numbers[2] != 11 || last != 11 {
		t.Errorf("%v through %d: %v", numbers, last, err)
	}
	if _, _, err := kafka.KeepBatches(batch(1, 3, "not lz4"), 0, 2); err == nil {
		t.Error("a batch that is not compressed as it says is read")
	}
}
