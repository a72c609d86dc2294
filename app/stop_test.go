package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/retry"
)

// slowMember drains for some seconds.
type slowMember struct {
	cluster.Member
	drains int
}

func (m *slowMember) Drain(ctx context.Context) error {
	m.drains++
	ctx, cancel := retry.Drain(ctx, time.Second)
	defer cancel()
	retry.Sleep(ctx, 3*time.Second)
	return nil
}

// The drain time of worker and sinks begins when requests have ended, also if the node
// has drained before.
func TestStopDrainsAfterRequests(t *testing.T) {
	for _, clustered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var left time.Duration
			drained := fx.Hook{OnStop: func(ctx context.Context) error {
				ctx, cancel := retry.Drain(ctx, 0)
				defer cancel()
				end, _ := ctx.Deadline()
				left = time.Until(end)
				return nil
			}}
			requests := fx.Hook{OnStop: func(ctx context.Context) error {
				retry.Sleep(ctx, 8*time.Second)
				return nil
			}}
			m := &slowMember{}
			s := &Server{member: m, clustered: clustered, app: fx.New(fx.NopLogger, fx.Invoke(func(lc fx.Lifecycle) {
				lc.Append(drained)
				lc.Append(requests)
			}))}
			if err := s.app.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if left != drainTimeout {
				t.Errorf("clustered %v: %s to drain after the requests, want %s", clustered, left, drainTimeout)
			}
			if want := map[bool]int{true: 1}[clustered]; m.drains != want {
				t.Errorf("clustered %v: drained %d times, want %d", clustered, m.drains, want)
			}
		})
	}
}
