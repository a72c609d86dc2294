package delivery

import (
	"context"
	"sync"

	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
)

// upperBound is the sequence number up to which the reader of imports may read:
// the position of the live reader.
type upperBound struct {
	mu      sync.Mutex
	seq     uint64
	changed chan struct{} // closed when seq moves
}

func newUpperBound(seq uint64) *upperBound {
	return &upperBound{seq: seq, changed: make(chan struct{})}
}

// raise moves the bound up to seq.
func (b *upperBound) raise(seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq > b.seq {
		b.seq = seq
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

func (b *upperBound) get() (seq uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq, b.changed
}

// boundedLog is a view of a log that ends at a bound.
type boundedLog struct {
	reader.Log
	bound *upperBound
}

// Read returns records up to the bound.
func (l *boundedLog) Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]journal.Record, error) {
	seq, _ := l.bound.get()
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
func (l *boundedLog) Wait(ctx context.Context, after uint64) error {
	for {
		seq, changed := l.bound.get()
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
