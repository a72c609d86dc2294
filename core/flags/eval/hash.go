package eval

import (
	"crypto/sha1" // of the published formula; not used for secrets
	"encoding/binary"
)

// bucketScale is the largest value of the 60 bits of a bucket.
const bucketScale = float64(0xFFFFFFFFFFFFFFF)

// variantSalt makes the hash of the variant differ from the hash of the rollout,
// so that variants are independent of the rollout percentage.
const variantSalt = "variant"

// bucket returns the bucket of an identifier for a flag, from 0 to 1, the same
// as in every client library: the first fifteen hexadecimal digits of the SHA-1
// of "key.identifier" and salt, divided by bucketScale. prefix is the key with
// its dot. buf is scratch space; bucket returns it for reuse.
func bucket(buf []byte, prefix, identifier, salt string) (float64, []byte) {
	buf = append(append(append(buf[:0], prefix...), identifier...), salt...)
	sum := sha1.Sum(buf)
	return float64(binary.BigEndian.Uint64(sum[:8])>>4) / bucketScale, buf
}

// holdoutPrefix makes the bucket of a holdout depend on the identifier alone:
// the same people are held out of every flag.
const holdoutPrefix = "holdout-"

// Bucket returns the bucket of an identifier for a flag, from 0 to 1. The salt is
// empty for the rollout and "variant" for the variant.
func Bucket(key, identifier, salt string) float64 {
	hash, _ := bucket(nil, key+".", identifier, salt)
	return hash
}

// HoldoutBucket returns the bucket of an identifier for all holdouts.
func HoldoutBucket(identifier string) float64 {
	hash, _ := bucket(nil, holdoutPrefix, identifier, "")
	return hash
}
