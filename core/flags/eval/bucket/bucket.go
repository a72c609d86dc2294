// Package bucket computes the bucket of an identifier for a flag: the number from
// 0 to 1 that decides rollouts and variants.
//
// A bucket is the first fifteen hexadecimal digits of the SHA-1 of
// "key.identifier" and a salt, divided by the largest such number. Every client
// library has the same formula, so that a person has the same value everywhere.
//
// A request computes one bucket for each flag with a rollout, which makes the hash
// the largest part of its cost. A Hasher writes the padded text to the hash as whole
// blocks and reads the state after them, which is the sum. It skips the copies that
// crypto/sha1 makes to pad a text of unknown length: about half of its time for
// these short texts.
package bucket

import (
	"crypto/sha1" // of the published formula; not used for secrets
	"encoding"
	"encoding/binary"
	"hash"
)

// scale is the largest value of the 60 bits of a bucket.
const scale = float64(0xFFFFFFFFFFFFFFF)

// Variant is the salt of the bucket that picks a variant. It makes that bucket
// independent of the one of the rollout.
const Variant = "variant"

// HoldoutPrefix is the prefix of the buckets of holdouts. It does not depend on the
// flag: the same people are held out of every flag.
const HoldoutPrefix = "holdout-"

// Hasher computes buckets. The zero value is ready to use. It keeps its buffers, so
// that Of allocates nothing after the first call. It is not safe for concurrent use.
type Hasher struct {
	sum   hash.Hash
	state encoding.BinaryAppender // of sum; nil if its format is not known
	text  []byte
	kept  []byte
}

// Of returns the bucket of an identifier, from 0 to 1. prefix is the key of the flag
// with a dot, or HoldoutPrefix. salt is empty for a rollout, Variant for a variant.
func (h *Hasher) Of(prefix, identifier, salt string) float64 {
	if h.sum == nil {
		h.init()
	}
	h.text = append(append(append(h.text[:0], prefix...), identifier...), salt...)
	return float64(h.first64()>>4) / scale
}

// Of returns the bucket of an identifier for the flag with a key; see Hasher.Of.
func Of(key, identifier, salt string) float64 {
	var h Hasher
	return h.Of(key+".", identifier, salt)
}

// OfHoldout returns the bucket of an identifier for all holdouts.
func OfHoldout(identifier string) float64 {
	var h Hasher
	return h.Of(HoldoutPrefix, identifier, "")
}

// stateAt is the place of the sum in the state of a hash: it follows the magic.
const stateAt = 4

func (h *Hasher) init() {
	h.sum = sha1.New()
	if stateIsSum {
		h.state, _ = h.sum.(encoding.BinaryAppender)
	}
}

// first64 returns the first 64 bits of the SHA-1 of the text.
func (h *Hasher) first64() uint64 {
	if h.state == nil {
		sum := sha1.Sum(h.text)
		return binary.BigEndian.Uint64(sum[:])
	}
	h.pad()
	h.sum.Reset()
	_, _ = h.sum.Write(h.text) // a hash never fails
	h.kept, _ = h.state.AppendBinary(h.kept[:0])
	return binary.BigEndian.Uint64(h.kept[stateAt:])
}

var zeros [sha1.BlockSize]byte

// pad completes the text to whole blocks as SHA-1 defines it: a bit, zeros and the
// length in bits.
func (h *Hasher) pad() {
	const lengthBytes = 8
	n := len(h.text)
	h.text = append(h.text, 0x80)
	rest := (len(h.text) + lengthBytes) % sha1.BlockSize
	if rest > 0 {
		h.text = append(h.text, zeros[rest:]...)
	}
	h.text = binary.BigEndian.AppendUint64(h.text, uint64(n)<<3)
}

// stateIsSum reports whether the state of a hash holds the sum where first64 reads
// it. The format is stable; another implementation of SHA-1 may have another one.
var stateIsSum = func() bool {
	h := Hasher{sum: sha1.New()}
	h.state, _ = h.sum.(encoding.BinaryAppender)
	if h.state == nil {
		return false
	}
	kept, err := h.state.AppendBinary(nil)
	if err != nil || len(kept) < stateAt+sha1.Size {
		return false
	}
	for _, text := range []string{"", "flag.person", string(make([]byte, 200))} {
		h.text = append(h.text[:0], text...)
		sum := sha1.Sum([]byte(text))
		if h.first64() != binary.BigEndian.Uint64(sum[:]) {
			return false
		}
	}
	return true
}()
