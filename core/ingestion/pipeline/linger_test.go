package pipeline

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLingerBesideOtherPartitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		linger, want time.Duration
		workers      int64
	}{
		{50 * time.Millisecond, 50 * time.Millisecond, 1},
		{50 * time.Millisecond, 150 * time.Millisecond, 3},
		{50 * time.Millisecond, 250 * time.Millisecond, 12},
		{time.Second, time.Second, 12},
		{0, 0, 12},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &Worker{cfg: Config{Linger: c.linger}, active: &atomic.Int64{}}
			w.active.Store(c.workers)
			l := &lane{Worker: w, begun: time.Now()}
			if waited := l.linger(t.Context()); waited != (c.want > 0) || time.Since(l.begun) != c.want {
				t.Errorf("%d workers with %s waited %s, want %s", c.workers, c.linger, time.Since(l.begun), c.want)
			}
			if l.linger(t.Context()) {
				t.Error("a batch waits after a longer pause")
			}
		})
	}
}
