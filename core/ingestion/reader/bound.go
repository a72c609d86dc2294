package reader

import (
	"context"
	"sync"

	"github.com/guidonhq/guidon/core/journal"
)

// UpperBound is a sequence number up to which a Bounded log is read. Its methods are safe
// for concurrent use.
type UpperBound struct {
	mu      sync.Mutex
	seq     uint64
	changed chan struct{} // closed when seq moves
}

// NewUpperBound returns a bound at seq.
func NewUpperBound(seq uint64) *UpperBound {
	return &UpperBound{seq: seq, changed: make(chan struct{})}
}

// Raise moves the bound up to seq.
func (b *UpperBound) Raise(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq > b.seq {
		b.seq = seq
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

func (b *UpperBound) get() (seq uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq, b.changed
}

// Bounded is a view of a log that ends at a bound.
type Bounded struct {
	Log
	// Bound is where the view ends.
	Bound *UpperBound
}

// Read returns records up to the bound.
func (l *Bounded) Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error) {
	seq, _ := l.Bound.get()
	if after >= seq {
		return nil, nil
	}
	records, err := l.Log.Read(ctx, after, maxRecords, maxBytes)
	for i := range records {
		if records[i].Seq > seq {
			return records[:i], err
		}
	}
	return records, err
}

// Wait returns when the bound is above after, or ctx ends.
func (l *Bounded) Wait(ctx context.Context, after uint64) error {
	for {
		seq, changed := l.Bound.get()
		if seq > after {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
