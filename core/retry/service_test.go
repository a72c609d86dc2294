package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/retry"
)

func TestStopDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s retry.Service
		s.Start()
		finished, killed := false, false
		s.Go(func(drainCtx, killCtx context.Context) {
			<-drainCtx.Done()
			killed = !retry.Sleep(killCtx, time.Second) // the call that is under way
			finished = true
		})
		if err := s.Stop(t.Context()); err != nil || !finished || killed {
			t.Errorf("Stop = %v, finished %v, killed %v; want nil, true, false", err, finished, killed)
		}
		if s.Go(func(context.Context, context.Context) { t.Error("runs after Stop") }) {
			t.Error("Go is true after Stop")
		}
	})
}

// Services that are stopped one after the other share one drain time; each has a
// grace.
func TestStopsShareDrainTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := retry.WithDrain(t.Context(), 10*time.Second)
		began := time.Now()
		for n, want := range []time.Duration{10 * time.Second, 11 * time.Second, 12 * time.Second} {
			var s retry.Service
			s.Start()
			s.Go(func(_, killCtx context.Context) { <-killCtx.Done() })
			if err := s.Stop(ctx); err != nil || time.Since(began) != want {
				t.Errorf("stop %d: %v after %v, want %v", n, err, time.Since(began), want)
			}
		}
	})
}

func TestStopKillsWhenItsTimeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s retry.Service
		s.Start()
		killed := false
		s.Go(func(_, killCtx context.Context) { killed = !retry.Sleep(killCtx, time.Hour) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := s.Stop(ctx); err != nil || !killed || time.Since(began) != time.Second {
			t.Errorf("Stop = %v after %v, killed %v; want nil after 1s, true", err, time.Since(began), killed)
		}
		if err := s.Stop(ctx); err != nil {
			t.Errorf("the second Stop = %v", err)
		}
	})
}

func TestEveryRunsEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s retry.Service
		s.Start()
		s.Start()
		runs := 0
		s.Every(time.Minute, func(context.Context) { runs++ })
		time.Sleep(time.Hour + time.Second)
		if err := s.Stop(t.Context()); err != nil || runs != 60 {
			t.Errorf("%d runs in an hour, Stop = %v; want 60, nil", runs, err)
		}
	})
}

func TestServiceThatNeverStarted(t *testing.T) {
	t.Parallel()
	var s retry.Service
	if s.Go(func(context.Context, context.Context) {}) {
		t.Error("Go is true before Start")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("Stop = %v", err)
	}
}
