package eval

import (
	"crypto/sha1" // the published formula; nothing here is a secret
	"encoding/binary"
)

// bucketScale is the largest value of the sixty bits a bucket is made of.
const bucketScale = float64(0xFFFFFFFFFFFFFFF)

// variantSalt sets the hash that picks a variant apart from the one that
// decides the rollout, so that growing a rollout keeps everyone's variant.
const variantSalt = "variant"

// bucket is where an identifier falls for a flag, from 0 to 1, the same in
// every client library: the first fifteen hexadecimal digits of the SHA-1 of
// "key.identifier" and salt as a share of the largest such number. prefix is
// the key with its dot; buf is scratch space and comes back.
func bucket(buf []byte, prefix, identifier, salt string) (float64, []byte) {
	buf = append(append(append(buf[:0], prefix...), identifier...), salt...)
	sum := sha1.Sum(buf)
	return float64(binary.BigEndian.Uint64(sum[:8])>>4) / bucketScale, buf
}

// holdoutPrefix makes the bucket of a holdout depend on the identifier alone:
// the same people are held out of every flag.
const holdoutPrefix = "holdout-"

// Bucket is where an identifier falls for a flag, from 0 to 1; the salt is
// empty for the rollout and "variant" for the choice of the variant.
func Bucket(key, identifier, salt string) float64 {
	hash, _ := bucket(nil, key+".", identifier, salt)
	return hash
}

// HoldoutBucket is where an identifier falls for all holdouts.
func HoldoutBucket(identifier string) float64 {
	hash, _ := bucket(nil, holdoutPrefix, identifier, "")
	return hash
}
