package scan_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/fault"
)

func limiter(places, queue int, wait time.Duration) *scan.Limiter {
	return scan.New(scan.Config{Places: places, Queue: queue, MaxWait: wait})
}

// begin begins a scan that must get its place at once.
func begin(t *testing.T, l *scan.Limiter, project int64) (context.Context, func()) {
	t.Helper()
	ctx, end, err := l.Begin(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, end
}

func TestPlacesBoundTheRunningScans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(2, 100, time.Hour)
		var mu sync.Mutex
		running, most := 0, 0
		var all sync.WaitGroup
		for project := range int64(10) {
			for range 5 {
				all.Go(func() {
					_, end, err := l.Begin(t.Context(), project)
					if err != nil {
						t.Error(err)
						return
					}
					defer end()
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					running--
					mu.Unlock()
				})
			}
		}
		all.Wait()
		if most != 2 {
			t.Errorf("%d scans ran at once", most)
		}
		if running, waiting := l.Running(); running != 0 || waiting != 0 {
			t.Errorf("%d run and %d wait afterwards", running, waiting)
		}
	})
}

// A project with one scan does not wait for the many of another one.
func TestProjectsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 100, time.Hour)
		_, end := begin(t, l, 1)
		order := make(chan int64, 10)
		var all sync.WaitGroup
		start := func(project int64) {
			all.Go(func() {
				_, end, err := l.Begin(t.Context(), project)
				if err == nil {
					order <- project
					time.Sleep(time.Second)
					end()
				}
			})
			synctest.Wait()
		}
		for range 5 {
			start(1)
		}
		start(2)
		end()
		first, second := <-order, <-order
		if first != 1 || second != 2 {
			t.Errorf("order %d, %d: project 2 waits for project 1", first, second)
		}
		all.Wait()
	})
}

func TestTheWaitOfARequestIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, reg := limiter(1, 1, 10*time.Second), prometheus.NewPedanticRegistry()
		if err := l.Register(reg); err != nil {
			t.Fatal(err)
		}
		_, end := begin(t, l, 1)
		failed := make(chan error)
		began := time.Now()
		go func() {
			_, _, err := l.Begin(t.Context(), 1)
			failed <- err
		}()
		synctest.Wait()
		_, _, err := l.Begin(t.Context(), 1) // the queue is full
		if f := fault.From(err); f == nil || f.Kind != fault.Unavailable || f.RetryAfter < time.Second {
			t.Errorf("full queue: %v", err)
		}
		err = <-failed
		if f := fault.From(err); f == nil || f.Kind != fault.Unavailable || time.Since(began) != 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if n := refusals(t, reg); n != 2 {
			t.Errorf("%g refusals", n)
		}
		end()
		_, end = begin(t, l, 1)
		end()
	})
}

// refusals returns the sum of the counters of refused scans.
func refusals(t *testing.T, reg prometheus.Gatherer) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "guidon_database_scans_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

func TestABackgroundScanWaitsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 0, time.Second)
		_, end := begin(t, l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, _, err := l.BeginBackground(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		end()
		_, end, err := l.BeginBackground(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		end()
	})
}

// Of two places, scans in the background leave one to requests.
func TestBackgroundScansLeaveAPlace(t *testing.T) {
	t.Parallel()
	l := limiter(2, 0, 0)
	_, endFirst, err := l.BeginBackground(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := l.BeginBackground(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("second background scan: %v", err)
	}
	_, end := begin(t, l, 1)
	end()
	endFirst()
}

// A part of a scan that begins a scan uses the place that the scan has.
func TestAScanInsideAScan(t *testing.T) {
	t.Parallel()
	l := limiter(1, 0, 0)
	ctx, end := begin(t, l, 1)
	_, endInner, err := l.Begin(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	endInner()
	if running, _ := l.Running(); running != 1 {
		t.Errorf("%d run", running)
	}
	end()
	end() // a second call does nothing
	if running, _ := l.Running(); running != 0 {
		t.Errorf("%d run", running)
	}
}

// A long scan gives its place away between two steps, and goes on afterwards.
func TestALongScanYields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 10, time.Hour)
		ctx, end := begin(t, l, 1)
		if err := scan.Yield(ctx); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, end, err := l.Begin(t.Context(), 2)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second)
			end()
		}()
		synctest.Wait()
		before := time.Now()
		if err := scan.Yield(ctx); err != nil || time.Since(before) != 0 {
			t.Errorf("a scan yields that has just begun: %v", err)
		}
		time.Sleep(time.Second)
		before = time.Now()
		if err := scan.Yield(ctx); err != nil || time.Since(before) != time.Second {
			t.Errorf("the scan waited for %s: %v", time.Since(before), err)
		}
		<-done
		end()
	})
}

// A scan whose context ends while it waits for its next turn holds no place.
func TestAScanThatLostItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 10, time.Hour)
		bounded, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		ctx, end, err := l.Begin(bounded, 1)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if _, endOther, err := l.Begin(t.Context(), 2); err == nil {
				time.Sleep(time.Minute)
				endOther()
			}
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		if err := scan.Yield(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		end()
		if running, waiting := l.Running(); running != 1 || waiting != 0 {
			t.Errorf("%d run, %d wait", running, waiting)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if running, _ := l.Running(); running != 0 {
			t.Errorf("%d run", running)
		}
	})
}

func TestYieldOutsideOfAScan(t *testing.T) {
	t.Parallel()
	if err := scan.Yield(t.Context()); err != nil {
		t.Error(err)
	}
	scan.PacerOf(t.Context()).Pace()
}

func TestScansPauseLongerBesideRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := begin(t, limiter(1, 1, time.Second), 1)
		defer end()
		pacer := scan.PacerOf(ctx)
		pauseOf := func(work time.Duration) time.Duration {
			time.Sleep(work)
			start := time.Now()
			pacer.Pace()
			return time.Since(start)
		}
		if d := pauseOf(time.Microsecond); d != 0 {
			t.Errorf("slept for %s after a microsecond of work", d)
		}
		if d := pauseOf(time.Millisecond); d != 100*time.Microsecond {
			t.Errorf("slept for %s", d)
		}
		pools.BeginRequest()
		if d := pauseOf(time.Millisecond); d != time.Millisecond {
			t.Errorf("slept for %s while a request is answered", d)
		}
		pools.EndRequest()
		if d := pauseOf(time.Millisecond); d != 100*time.Microsecond {
			t.Errorf("slept for %s after the request", d)
		}
	})
}
