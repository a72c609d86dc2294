package host_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// earlyWords is what the plugin "early" prints before its main function runs.
const earlyWords = "printed before main"

func init() {
	if len(os.Args) == 4 && os.Args[1] == "plugin" && os.Args[3] == "early" {
		fmt.Println(earlyWords)
	}
}

func TestOutputBeforeMainDoesNotBreakHandshake(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "early", nil)))
	write(t, r.sink(t), batch("ok-1", 0, 1))
	eventually(t, func() string {
		if r.logs.FilterMessage(earlyWords).Len() == 0 {
			return "it is not in the log"
		}
		return ""
	})
}

func TestCallersDoNotSpinWhilePluginIsAway(t *testing.T) {
	t.Parallel()
	cfg := config(instance("p", "probe", nil))
	cfg.Restart.QuarantineExits = 100
	r := start(t, cfg)
	s := r.sink(t)
	const writers, deaths = 8, 3
	var calls, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if s.Ready(ctx) != nil {
					return
				}
				if _, err := s.Write(context.WithoutCancel(ctx), batch(fmt.Sprintf("ok-%d-%d", w, n), 0, 1)); err != nil {
					failed.Add(1)
				}
				calls.Add(1)
			}
		})
	}
	for n := range deaths {
		before := calls.Load()
		eventually(t, func() string {
			if calls.Load() < before+100 {
				return "nothing is written"
			}
			return ""
		})
		pid := r.Status()[0].PID
		kill(t, pid, syscall.SIGKILL)
		eventually(t, func() string {
			if st := r.Status()[0]; st.Restarts <= n || st.State != lifecycle.StateReady || st.PID == pid || st.PID == 0 {
				return "not restarted"
			}
			return ""
		})
	}
	stop()
	wg.Wait()
	// A writer fails with the call it had on the way, and at most once or twice
	// more before it finds the gate closed.
	if n := failed.Load(); n > 3*writers*deaths {
		t.Errorf("%d calls failed in %d deaths", n, deaths)
	}
}

func TestConfigChangeWhilePluginIsNotRunning(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, use string
		when      lifecycle.State
	}{
		{"between two starts", "crash", lifecycle.StateBackoff},
		{"during a start", "silent", lifecycle.StateStarting},
		{"while it connects", "opentransient", lifecycle.StateConfigured},
		{"in quarantine", "crash", lifecycle.StateQuarantined},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bad := instance("p", tt.use, map[string]any{"trace": t.TempDir() + "/trace"})
			if tt.use == "silent" {
				bad.Timeouts.Start = 5 * time.Second // a start is not interrupted
			}
			cfg := config(bad)
			if tt.when == lifecycle.StateQuarantined {
				cfg.Restart.QuarantineExits = 1
			} else {
				cfg.Restart.Initial, cfg.Restart.Max = time.Hour, time.Hour
			}
			r := start(t, cfg)
			r.becomes(t, tt.when)
			cfg.Instances = []settings.Instance{instance("p", "probe", nil)}
			if err := r.Apply(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			r.becomes(t, lifecycle.StateReady)
			write(t, r.Sinks()[0], batch("ok-1", 0, 1))
		})
	}
}

func TestRemovedInstanceStaysAway(t *testing.T) {
	t.Parallel()
	cfg := config(instance("bad", "crash", nil), instance("good", "probe", nil))
	cfg.Restart.QuarantineExits = 1 << 30
	r := start(t, cfg)
	eventually(t, func() string {
		if r.Status()[0].Restarts < 2 {
			return "not restarted"
		}
		return ""
	})
	cfg.Instances = cfg.Instances[1:]
	if err := r.Apply(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	starts := func() int { return r.logs.FilterMessage("plugin restart scheduled").Len() }
	before := starts()
	ready(t, r, r.Sinks()[0])
	time.Sleep(100 * time.Millisecond) // there is nothing to wait for: nothing may happen
	if now := starts(); now != before || len(r.Status()) != 1 {
		t.Errorf("%d starts after %d, status %+v", now, before, r.Status())
	}
}

func TestPluginsOutliveTheApplyContext(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	h, err := host.New(config(instance("a", "probe", nil)), host.Deps{DataDir: t.TempDir(), Bundled: bundled})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(over); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Stop(context.Background()) })
	cancel()
	r := &run{Host: h}
	ready(t, r, h.Sinks()[0])
	if err := h.Apply(over, config(instance("a", "probe", nil), instance("b", "probe", map[string]any{"number": 1}))); err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Sinks() {
		ready(t, r, s)
		write(t, s, batch("ok-1", 0, 1))
	}
}

func TestPluginsRunWithoutTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/null/nothing")
	dir, err := os.MkdirTemp("/tmp", "gd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h, err := host.New(config(instance("a", "probe", nil)), host.Deps{DataDir: dir, Bundled: bundled})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Stop(context.Background()) })
	ready(t, &run{Host: h}, h.Sinks()[0])
	if got := write(t, h.Sinks()[0], batch("ok-1", 0, 1)); got.Outcome != sdk.Committed {
		t.Errorf("%+v", got)
	}
}
