// Package expiry decides which blocks of the journal retention removes. It is pure.
package expiry

import (
	"sync/atomic"
	"time"
)

// Block is the outline of a block: the number of its last record, its time in
// microseconds, and its position in bytes.
type Block struct {
	Last uint64
	At   int64
	Pos  int64
}

// Bounds are the bounds of retention, which may change while the journal is open. The
// zero value keeps everything.
type Bounds struct{ maxBytes, maxAge atomic.Int64 }

// Set sets the bounds: bytes that are kept, and the age after which nothing is; 0 is no
// bound.
func (b *Bounds) Set(maxBytes int64, maxAge time.Duration) {
	b.maxBytes.Store(maxBytes)
	b.maxAge.Store(maxAge.Microseconds())
}

// MaxBytes returns the bound of the size; 0 for none.
func (b *Bounds) MaxBytes() int64 { return b.maxBytes.Load() }

// Before returns the time in microseconds before which blocks expire; false without a
// bound of the age.
func (b *Bounds) Before(now int64) (int64, bool) {
	age := b.maxAge.Load()
	return now - age, age > 0
}

// Due reports whether the oldest block, of the time at, may have expired while bytes are
// kept. A block whose time is ahead of now is due, too.
func (b *Bounds) Due(bytes, at, now int64) bool {
	most := b.MaxBytes()
	before, bounded := b.Before(now)
	return most > 0 && bytes > most || bounded && (at > now || at < before)
}

// Cut returns the number of the last record that retention removes. A block expires if
// more than maxBytes are kept with it, or if its time is earlier than before; 0 is no
// bound. blocks are the oldest blocks in order, at most limit of them, and end is the end
// position of the newest block. Cut stops after step bytes; more is true if further
// blocks may have expired.
func Cut(blocks []Block, end, maxBytes, before, step int64, limit int) (cut uint64, more bool) {
	for _, b := range blocks {
		tooMuch := maxBytes > 0 && end-b.Pos > maxBytes
		tooOld := before > 0 && b.At < before
		if !tooMuch && !tooOld {
			return cut, false
		}
		if b.Pos-blocks[0].Pos > step {
			return cut, true
		}
		cut = b.Last
	}
	return cut, len(blocks) == limit
}
