package cluster_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/cluster"
)

func TestAloneOwnsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := cluster.Alone()
		runs := 0
		s.Run("once", func(ctx context.Context, token int64) {
			runs++
			if token != 1 || !cluster.Valid(ctx) || cluster.Fence(ctx) != nil {
				t.Errorf("token %d, valid %t, fence %v", token, cluster.Valid(ctx), cluster.Fence(ctx))
			}
			if runs > 1 {
				<-ctx.Done()
			}
		})
		var mu sync.Mutex
		running := map[int]bool{}
		s.Follow("log", 3, func(number int, token int64) func(context.Context) {
			running[number] = s.Holds("log", number, token) && token == 1
			return func(context.Context) {
				time.Sleep(time.Duration(number) * time.Second)
				mu.Lock()
				defer mu.Unlock()
				running[number] = false
			}
		})
		if !running[0] || !running[1] || !running[2] || len(running) != 3 {
			t.Fatalf("running after Follow: %v", running)
		}
		time.Sleep(time.Minute) // of the bubble
		began := time.Now()
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("drained in %s, want the 2 s of the slowest", took)
		}
		if running[0] || running[1] || running[2] {
			t.Errorf("running after Drain: %v", running)
		}
		if runs != 2 {
			t.Errorf("the job ran %d times, want 2: it returned early once", runs)
		}
		s.Run("late", func(context.Context, int64) { t.Error("a job started after Drain") })
		s.Follow("late", 1, func(int, int64) func(context.Context) { t.Error("a number started after Drain"); return nil })
		synctest.Wait()
	})
}

func TestAloneDrainEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := cluster.Alone()
		s.Run("slow", func(ctx context.Context, _ int64) { <-ctx.Done(); time.Sleep(time.Minute) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Drain(ctx); err == nil {
			t.Error("Drain returned nil before the job ended")
		}
		time.Sleep(time.Minute)
	})
}
