package bucket_test

import (
	"crypto/sha1"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval/bucket"
)

// Texts of every length up to three blocks have the bucket of their SHA-1.
func TestBucketsAreThoseOfSHA1(t *testing.T) { //nolint:paralleltest // counts allocations
	var h bucket.Hasher
	for n := range 200 {
		id := strings.Repeat("x", n)
		sum := sha1.Sum([]byte("flag." + id + bucket.Variant))
		want := float64(binary.BigEndian.Uint64(sum[:])>>4) / float64(0xFFFFFFFFFFFFFFF)
		if got := h.Of("flag.", id, bucket.Variant); got != want {
			t.Fatalf("%d characters: got %v, want %v", n, got, want)
		}
	}
	if testing.Short() {
		return // short runs have the race detector, which makes SHA-1 allocate
	}
	if n := testing.AllocsPerRun(100, func() { h.Of("flag.", "person", "") }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

func BenchmarkBucket(b *testing.B) {
	var h bucket.Hasher
	b.ReportAllocs()
	for b.Loop() {
		h.Of("flag-number-17.", "distinct_id_42", "")
	}
}

func BenchmarkSHA1Sum(b *testing.B) {
	text := []byte("flag-number-17.distinct_id_42")
	for b.Loop() {
		sha1.Sum(text)
	}
}
