package scan_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
)

// running counts the parts that run.
type running struct {
	mu        sync.Mutex
	now, most int
}

func (r *running) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now += n
	r.most = max(r.most, r.now)
}

// parts starts parts of one scan, of a tenth of a second each.
func parts(t *testing.T, l *scan.Limiter, n int, r *running) *sync.WaitGroup {
	t.Helper()
	ctx := scan.Share(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_, end, err := l.BeginBackground(ctx, 1)
			if err != nil {
				t.Error(err)
				return
			}
			defer end()
			r.add(1)
			defer r.add(-1)
			if places, _ := l.Running(); places > 2 {
				t.Errorf("%d places are in use", places)
			}
			time.Sleep(100 * time.Millisecond)
		})
	}
	return &all
}

func TestPartsShareAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 10, time.Hour).WithParts(3)
		began := time.Now()
		var r running
		parts(t, l, 30, &r).Wait()
		if r.most != 3 || time.Since(began) != time.Second {
			t.Errorf("%d parts at once, %v", r.most, time.Since(began))
		}
		if running, _ := l.Running(); running != 0 {
			t.Error("the place was not freed")
		}
		_, end := begin(t, l, 2) // and can be used again
		end()
	})
}

// A scan of a request does not wait for a whole count.
func TestPartsGiveTheirPlaceAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 10, time.Hour).WithParts(3)
		all := parts(t, l, 300, &running{})
		time.Sleep(time.Millisecond)
		began := time.Now()
		_, end := begin(t, l, 2)
		if waited := time.Since(began); waited > 400*time.Millisecond {
			t.Errorf("a request waited %v", waited)
		}
		if running, _ := l.Running(); running != 1 {
			t.Errorf("%d places are in use", running)
		}
		end()
		all.Wait()
	})
}

// Two scans together do not run more parts than one.
func TestPartsOfAllScansAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(3, 10, time.Hour).WithParts(3)
		var r running
		first, second := parts(t, l, 20, &r), parts(t, l, 20, &r)
		first.Wait()
		second.Wait()
		if r.most > 4 { // each has the first part of its place
			t.Errorf("%d parts at once", r.most)
		}
	})
}

func TestCanceledPartsFreeThePlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(1, 10, time.Hour).WithParts(2)
		ctx, cancel := context.WithCancel(scan.Share(t.Context()))
		_, first, err := l.BeginBackground(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, second, err := l.BeginBackground(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() {
			_, _, err := l.BeginBackground(ctx, 1)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		first()
		second()
		_, end := begin(t, l, 2)
		end()
	})
}
