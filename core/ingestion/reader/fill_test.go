package reader

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// skippable is a log with one record at a time, of which the reader skips all.
type skippable struct {
	Log
	last uint64
}

func (l *skippable) Read(_ context.Context, after uint64, _, _ int) (out []journal.Record, err error) {
	for seq := after + 1; seq <= l.last; seq++ {
		out = append(out, journal.Record{Seq: seq, Data: (&event.Record{ProjectID: 1}).Append(nil)})
	}
	return out, nil
}

// Wait returns each second, when there is a new record.
func (l *skippable) Wait(ctx context.Context, _ uint64) error {
	if !retry.Sleep(ctx, time.Second) {
		return ctx.Err()
	}
	l.last++
	return nil
}

func TestFillBatchWaitsBeforeItSkips(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ delay, want time.Duration }{{0, SkipDelay}, {7 * time.Second, 7 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			r := New(&skippable{last: 1}, event.DefaultLimits(), journal.Position{}, func(*event.Record) bool { return false })
			b, begin := &Batch{}, time.Now()
			if !r.FillBatch(t.Context(), b, FillOptions{MaxEvents: 10, MaxBytes: 1000, SkipDelay: c.delay, Backoff: &retry.Backoff{}, Log: zap.NewNop()}) {
				t.Fatal("no batch")
			}
			if waited := time.Since(begin); waited != c.want || !b.Idle() || b.End.Seq < 1 {
				t.Errorf("waited %s for the records through %d, want %s", waited, b.End.Seq, c.want)
			}
		})
	}
}

// A batch that is full of what its owner does not process is returned at once.
func TestFillBatchReturnsFullBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(&skippable{last: 1}, event.DefaultLimits(), journal.Position{}, nil)
		b, begin := &Batch{Notices: make([]ProjectNotice, maxNotices)}, time.Now()
		r.FillBatch(t.Context(), b, FillOptions{
			MaxEvents: 10, MaxBytes: 1000, Idle: func(b *Batch) bool { return len(b.Events) == 0 }, Backoff: &retry.Backoff{}, Log: zap.NewNop(),
		})
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestScalePause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d, limit   time.Duration
		partitions int64
		want       time.Duration
	}{
		{time.Second, 10 * time.Second, 0, time.Second},
		{time.Second, 10 * time.Second, 1, time.Second},
		{time.Second, 10 * time.Second, 4, 4 * time.Second},
		{time.Second, 10 * time.Second, 12, 10 * time.Second},
		{time.Minute, 10 * time.Second, 12, time.Minute},
		{0, time.Second, 12, 0},
	} {
		if got := ScalePause(c.d, c.partitions, c.limit); got != c.want {
			t.Errorf("%s for %d partitions, at most %s: %s, want %s", c.d, c.partitions, c.limit, got, c.want)
		}
	}
}
