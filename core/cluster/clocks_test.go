package cluster

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	logs "go.uber.org/zap/zaptest/observer"
)

// shiftedClocks is a clock that is ahead of that of the database by a time which tests set.
type shiftedClocks struct{ ahead atomic.Int64 }

func (c *shiftedClocks) Sync(context.Context) error { return nil }
func (c *shiftedClocks) Ahead() time.Duration       { return time.Duration(c.ahead.Load()) }

// TestClockDiffers moves the clock of a node a minute ahead, a minute behind, and back: the
// state says each, and the log has each change once.
func TestClockDiffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, seen := logs.New(zap.InfoLevel)
		c := &shiftedClocks{}
		n := &Node{clocks: c, log: zap.New(core)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go n.watchClock(ctx)
		for _, step := range []struct {
			ahead   time.Duration
			problem string
		}{
			{clockTolerance, ""}, {time.Minute, "1m0s ahead of the clock"}, {-time.Minute, "1m0s behind the clock"}, {-time.Second, ""},
		} {
			c.ahead.Store(int64(step.ahead))
			time.Sleep(2 * clockInterval)
			synctest.Wait()
			got := n.Clock()
			if got.AheadSeconds != step.ahead.Seconds() || got.Degraded() != (step.problem != "") || !strings.Contains(got.Problem, step.problem) {
				t.Errorf("%s ahead: %+v", step.ahead, got)
			}
		}
		if wrong, right := seen.FilterMessage("clock differs from that of the database").Len(), seen.FilterMessage("clock agrees with that of the database again").Len(); wrong != 1 || right != 1 {
			t.Errorf("the log has %d warnings and %d recoveries", wrong, right)
		}
	})
}
