package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/retry"
)

// A wake channel that never receives changes no interval, however long fn takes; a
// wake-up runs fn at once, and a second one after the time that the first run took.
func TestEveryOrKeepsTheInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s retry.Service
		s.Start()
		wake, began := make(chan struct{}, 1), make(chan time.Time)
		s.EveryOr(time.Second, wake, func(context.Context) {
			began <- time.Now()
			time.Sleep(300 * time.Millisecond)
		})
		first := <-began
		for i := range 10 {
			if at := <-began; at.Sub(first) != time.Duration(i+1)*time.Second {
				t.Errorf("run %d after %s", i+1, at.Sub(first))
			}
		}
		last := time.Now()
		for _, want := range []time.Duration{300 * time.Millisecond, 900 * time.Millisecond} {
			wake <- struct{}{}
			if at := <-began; at.Sub(last) != want {
				t.Errorf("woken after %s, want %s", at.Sub(last), want)
			}
		}
		go func() { // until Stop has ended the last run
			for range began {
			}
		}()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		close(began)
	})
}
