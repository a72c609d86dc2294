// Package retry waits between attempts and stops background work in two
// phases.
//
// Sleep waits with a context. Delay and Backoff compute exponential pauses with
// jitter. Service owns the goroutines of a component: Stop first drains them,
// then kills the rest when its own time ends, and waits in both cases.
//
// The pauses are computed here and not by cenkalti/backoff, which is in the
// module graph: it draws around the interval and so exceeds the configured
// maximum by half, and it cannot compute the pause after an attempt count that
// was stored in a database.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d. It returns false when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	_, ok := sleepOr(ctx, d, nil)
	return ok
}

// sleepOr is Sleep that also returns when wake receives, and then reports woken.
func sleepOr(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken, ok bool) {
	if ctx.Err() != nil {
		return false, false
	}
	if d <= 0 {
		return false, true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false, true
	case <-wake:
		return true, true
	case <-ctx.Done():
		return false, false
	}
}

// SleepAligned waits about d, until the clock is at a multiple of d: between d/2 and
// 3d/2 at first, then d. Loops with the same interval, or multiples of it, so wake
// the process together; an idle process pays for each wake-up, not for what runs in it.
// It returns false when ctx ends first.
func SleepAligned(ctx context.Context, d time.Duration) bool {
	_, ok := sleepAlignedOr(ctx, d, nil)
	return ok
}

// sleepAlignedOr is SleepAligned that also returns when wake receives, and then reports
// woken.
func sleepAlignedOr(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken, ok bool) {
	return sleepOr(ctx, untilAligned(time.Duration(time.Now().UnixNano()), d), wake)
}

// untilAligned returns the time from now to the first multiple of d that is at least
// d/2 away.
func untilAligned(now, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	next := (now + d/2 + d - 1) / d * d
	return next - now
}

// Delay returns the pause after an attempt, the first being 1. It doubles from
// least to most with each attempt; a random half of it is jitter, so that
// callers that fail together retry apart. The result is in [d/2, d] where d is
// the doubled value, and never above most.
func Delay(attempt int, least, most time.Duration) time.Duration {
	d := least
	for i := 1; i < attempt && d < most; i++ {
		if d > most/2 {
			d = most
			break
		}
		d *= 2
	}
	d = max(min(d, most), 0)
	return d/2 + rand.N(d/2+1)
}

// Backoff is the growing pause between attempts of one operation: Delay with a
// count of its own. It is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration

	attempts int
}

// Next returns the pause before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.attempts++
	return Delay(b.attempts, b.Min, b.Max)
}

// Reset starts again from Min, after a success.
func (b *Backoff) Reset() { b.attempts = 0 }

// Sleep waits for the next pause. It returns false when ctx ends first.
func (b *Backoff) Sleep(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Until calls fn until it returns nil, with the pauses of b after failures, and
// reports whether it did. It returns false when ctx ends first. onError, which
// may be nil, receives each error of fn but those after the end of ctx.
func Until(ctx context.Context, b Backoff, fn func() error, onError func(error)) bool {
	for ctx.Err() == nil {
		err := fn()
		if err == nil {
			return true
		}
		if ctx.Err() == nil && onError != nil {
			onError(err)
		}
		b.Sleep(ctx)
	}
	return false
}
