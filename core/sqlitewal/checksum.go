package sqlitewal

import (
	"encoding/binary"
	"math/bits"
)

// sum is the checksum of a log: two sums over words, each of which takes part in
// the other.
type sum struct{ a, b uint32 }

func sumOf(stored []byte) sum {
	return sum{binary.BigEndian.Uint32(stored), binary.BigEndian.Uint32(stored[4:])}
}

func putSum(to []byte, s sum) {
	binary.BigEndian.PutUint32(to, s.a)
	binary.BigEndian.PutUint32(to[4:], s.b)
}

// sumAt continues a checksum over data, whose length is a multiple of 8.
func sumAt(order binary.ByteOrder, s sum, data []byte) sum {
	if order == binary.ByteOrder(binary.LittleEndian) {
		for ; len(data) >= 8; data = data[8:] {
			s.a += binary.LittleEndian.Uint32(data) + s.b
			s.b += binary.LittleEndian.Uint32(data[4:]) + s.a
		}
		return s
	}
	for ; len(data) >= 8; data = data[8:] {
		s.a += binary.BigEndian.Uint32(data) + s.b
		s.b += binary.BigEndian.Uint32(data[4:]) + s.a
	}
	return s
}

// frameSum is the checksum of a frame after one that ended with s: over the page
// number, the size of the file, and the page.
func frameSum(order binary.ByteOrder, s sum, frame []byte) sum {
	return sumAt(order, sumAt(order, s, frame[:8]), frame[frameBytes:])
}

// correct flips the one bit of a frame whose checksum is got instead of want; it
// reports whether there is exactly one such bit.
func correct(order binary.ByteOrder, frame []byte, got, want sum) bool {
	word, bit, ok := findBit(order, got, want, frame[:8], frame[frameBytes:])
	if !ok {
		return false
	}
	part := frame[:8]
	if word >= 2 {
		part, word = frame[frameBytes:], word-2
	}
	part = part[4*word:]
	order.PutUint32(part, order.Uint32(part)^1<<bit)
	return true
}

// findBit returns the word and the bit whose flip changes the checksum of parts
// from got to want, if there is exactly one. The checksum is linear modulo 2^32: a
// word adds itself times a factor that depends on its distance from the end. The
// highest bits of different words often have the same effect.
func findBit(order binary.ByteOrder, got, want sum, parts ...[]byte) (word, bit int, found bool) {
	da, db := want.a-got.a, want.b-got.b
	words := 0
	for _, p := range parts {
		words += len(p) / 4
	}
	first, second := sum{1, 1}, sum{0, 1} // factors of the words of a pair
	at := words
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		for ; len(p) >= 8; p = p[:len(p)-8] {
			at -= 2
			pair := p[len(p)-8:]
			for k, factor := range [2]sum{first, second} {
				if b, ok := flippedBit(order.Uint32(pair[4*k:]), factor, da, db); ok {
					if found {
						return 0, 0, false
					}
					word, bit, found = at+k, b, true
				}
			}
			first, second = sum{first.a + first.b, first.a + 2*first.b}, sum{second.a + second.b, second.a + 2*second.b}
		}
	}
	return word, bit, found
}

// flippedBit returns the bit of a word whose flip adds (da, db) to the checksum.
func flippedBit(word uint32, factor sum, da, db uint32) (bit int, ok bool) {
	for m := uint32(1); m != 0; m <<= 1 {
		d := m
		if word&m != 0 {
			d = -m
		}
		if factor.a*d == da && factor.b*d == db {
			return bits.TrailingZeros32(m), true
		}
	}
	return 0, false
}
