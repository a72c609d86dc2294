package reader

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// SkipDelay is how long FillBatch waits for a batch with work before it returns
// one that only moves the position over skipped records.
const SkipDelay = time.Second

// FillOptions are the limits of FillBatch.
type FillOptions struct {
	MaxEvents, MaxBytes int
	// Idle reports that a batch holds nothing to process; nil is Batch.Idle.
	Idle func(*Batch) bool
	// More is called once, when a batch has work and is not full. It may wait; if it
	// returns true, the events that came meanwhile are added. nil adds none.
	More func() bool
	// SkipDelay replaces SkipDelay of the package; 0 keeps it.
	SkipDelay time.Duration
	// Backoff is the pause after a failed read.
	Backoff *retry.Backoff
	Log     *zap.Logger
}

// FillBatch waits until the journal has events to process and adds them to b. It
// also returns with an idle batch when only skipped records came for a while, or when
// that is full of what its owner does not process.
// The result is false when ctx ends.
func (r *Reader) FillBatch(ctx context.Context, b *Batch, o FillOptions) bool {
	idle := o.Idle
	if idle == nil {
		idle = (*Batch).Idle
	}
	delay := cmp.Or(o.SkipDelay, SkipDelay)
	var deadline time.Time // for an idle batch; zero while it is empty
	for {
		full, err := r.Fill(ctx, b, o.MaxEvents, o.MaxBytes)
		if err == nil && !full && !idle(b) && o.More != nil && o.More() {
			_, err = r.Fill(ctx, b, o.MaxEvents, o.MaxBytes)
		}
		if full || !idle(b) || !deadline.IsZero() && !time.Now().Before(deadline) {
			return ctx.Err() == nil
		}
		if !b.Empty() && deadline.IsZero() {
			deadline = time.Now().Add(delay)
		}
		if err == nil {
			err = r.waitUntil(ctx, deadline)
		}
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			o.Backoff.Reset()
		default:
			o.Log.Warn("journal read failed", zap.Error(err))
			o.Backoff.Sleep(ctx)
		}
	}
}

// waitUntil waits for more records, at most until the deadline. The zero time is
// no deadline.
func (r *Reader) waitUntil(ctx context.Context, deadline time.Time) error {
	if deadline.IsZero() {
		return r.Wait(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := r.Wait(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

// LogDamaged logs the damaged ranges that the owner of a reader moves over.
func LogDamaged(log *zap.Logger, b *Batch) {
	for _, d := range b.Damaged {
		log.Error("damaged journal range skipped", zap.Uint64("first", d.First), zap.Uint64("last", d.Last), zap.Error(d))
	}
}
