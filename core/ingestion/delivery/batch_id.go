package delivery

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"

	"github.com/guidonhq/guidon/sdk"
)

// part returns the records of the batch from index from up to to, as a batch of
// the SDK.
func (b *batch) part(instance string, from, to int, attempt uint32) *sdk.Batch {
	out := &sdk.Batch{
		Attempt: attempt, FirstSeq: b.firstSeq + uint64(from), LastSeq: b.firstSeq + uint64(to) - 1, Records: b.records[from:to:to],
	}
	out.ID = batchID(instance, out)
	return out
}

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// batchID returns the id of a batch: a ULID of the arrival of its first event and
// a hash of its content. The same events with the same sequence numbers have the
// same id in every attempt, by any process; other events have another id.
func batchID(instance string, b *sdk.Batch) string {
	h := sha256.New()
	var numbers [16]byte
	binary.BigEndian.PutUint64(numbers[:], b.FirstSeq)
	binary.BigEndian.PutUint64(numbers[8:], b.LastSeq)
	h.Write([]byte(instance))
	h.Write(numbers[:])
	for i := range b.Records {
		h.Write(b.Records[i].UUID[:])
	}
	// 128 bits are 26 characters of 5 bits with two zero bits in front.
	var id [17]byte
	binary.BigEndian.PutUint64(id[:8], uint64(b.Records[0].ReceivedAt.UnixMilli())<<16)
	copy(id[6:16], h.Sum(nil))
	return crockford.EncodeToString(shiftRight2(id))[:26]
}

// shiftRight2 shifts the bits of id two places to the right.
func shiftRight2(id [17]byte) []byte {
	for i := len(id) - 1; i > 0; i-- {
		id[i] = id[i]>>2 | id[i-1]<<6
	}
	id[0] >>= 2
	return id[:]
}
