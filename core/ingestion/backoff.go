package ingestion

import (
	"math/rand/v2"
	"time"
)

// backoff is a growing pause between attempts: each about twice the one before,
// from least to most, of which at least half is kept and the rest is chance, so
// that many who fail together do not come back together.
type backoff struct {
	least, most time.Duration
	next        time.Duration
}

func (b *backoff) reset() { b.next = 0 }

// pause returns how long to wait before the next attempt.
func (b *backoff) pause() time.Duration {
	b.next = min(max(b.next*2, b.least), b.most)
	return b.next/2 + rand.N(b.next/2+1)
}
