package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/retry"
)

func TestDelayDoublesUpToTheMaximum(t *testing.T) {
	t.Parallel()
	const least, most = 100 * time.Millisecond, time.Second
	for attempt, want := range map[int]time.Duration{
		0: least, 1: least, 2: 2 * least, 3: 4 * least, 4: 8 * least, 5: most, 6: most, 1 << 30: most,
	} {
		for range 100 {
			if d := retry.Delay(attempt, least, most); d < want/2 || d > want {
				t.Fatalf("Delay(%d) = %v, want %v to %v", attempt, d, want/2, want)
			}
		}
	}
	if d := retry.Delay(100, 1<<62, 1<<63-1); d <= 0 {
		t.Errorf("Delay overflows to %v", d)
	}
	if d := retry.Delay(3, 0, 0); d != 0 {
		t.Errorf("Delay without limits = %v, want 0", d)
	}
}

func TestBackoffStartsAgainAfterReset(t *testing.T) {
	t.Parallel()
	b := retry.Backoff{Min: 100 * time.Millisecond, Max: time.Minute}
	for range 5 {
		b.Next()
	}
	if d := b.Next(); d < 1600*time.Millisecond {
		t.Errorf("the sixth pause is %v, want at least 1.6s", d)
	}
	b.Reset()
	if d := b.Next(); d > b.Min {
		t.Errorf("the pause after Reset is %v, want at most %v", d, b.Min)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !retry.Sleep(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("Sleep took %v, want 1h", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if retry.Sleep(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("Sleep took %v, want 1m and false", time.Since(began))
		}
		if retry.Sleep(ctx, 0) {
			t.Error("Sleep is true after the end of its context")
		}
	})
}

func TestUntilRepeatsUntilSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, failures := 0, 0
		ok := retry.Until(t.Context(), retry.Backoff{Min: time.Second, Max: time.Minute}, func() error {
			if calls++; calls < 4 {
				return errors.New("database is down")
			}
			return nil
		}, func(error) { failures++ })
		if !ok || calls != 4 || failures != 3 {
			t.Errorf("Until = %v after %d calls and %d failures, want true, 4, 3", ok, calls, failures)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if retry.Until(ctx, retry.Backoff{Min: time.Second, Max: time.Minute}, func() error { return errors.New("database is down") }, nil) {
			t.Error("Until is true though fn never succeeded")
		}
	})
}
