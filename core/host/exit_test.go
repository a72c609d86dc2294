package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

func TestKilledProcessIsRestarted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		die  func(t *testing.T, r *run)
		id   string
		says string
	}{
		{"killed in the middle of a batch", func(t *testing.T, r *run) { kill(t, r.Status()[0].PID, syscall.SIGKILL) }, "hang-1", "signal: killed"},
		{"crashed by its own goroutine", nil, "die-1", "panic: no luck in a goroutine"},
		{"gone without a word", nil, "exit-1", "exited with code 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "trace")
			r := start(t, config(instance("p", "probe", map[string]any{"trace": trace})))
			s := r.sink(t)
			write(t, s, batch("ok-0", 0, 5))
			if tt.die != nil {
				go func() {
					waitFor(trace, "write "+tt.id)
					tt.die(t, r)
				}()
			}
			_, err := s.Write(t.Context(), batch(tt.id, 5, 5))
			var e *sdk.Error
			if !errors.As(err, &e) || e.Class != sdk.ClassTransient || e.Code != "plugin_unavailable" {
				t.Fatalf("error %v", err)
			}
			writes(t, s, batch("ok-1", 5, 5)) // a health check that passed just before may open the gate once more
			st := r.Status()[0]
			if st.Restarts != 1 || !strings.Contains(st.LastError, tt.says) {
				t.Errorf("restarts %d, error %q", st.Restarts, st.LastError)
			}
			if text, _ := os.ReadFile(trace); !strings.Contains(string(text), "open p 5\n") {
				t.Errorf("the new process did not receive the position: %s", text)
			}
		})
	}
}

// waitFor waits until a file contains the text.
func waitFor(path, text string) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if got, _ := os.ReadFile(path); strings.Contains(string(got), text) {
			return
		}
	}
}

// writes waits until a sink commits a batch: its gate is closed for a moment after
// calls that hung.
func writes(t *testing.T, s *host.SinkInstance, b *sdk.Batch) {
	t.Helper()
	eventually(t, func() string {
		got, err := s.Write(t.Context(), b)
		if err != nil || got.Outcome != sdk.Committed {
			return fmt.Sprintf("%+v %v", got, err)
		}
		return ""
	})
}

func TestFrozenProcessIsReplaced(t *testing.T) {
	t.Parallel()
	r := start(t, config(impatient("p", "probe", nil)))
	s := r.sink(t)
	pid := r.Status()[0].PID
	kill(t, pid, syscall.SIGSTOP)
	eventually(t, func() string {
		if st := r.Status()[0]; st.State != lifecycle.StateReady || st.PID == pid || st.PID == 0 {
			return fmt.Sprintf("%s, pid %d", st.State, st.PID)
		}
		return ""
	})
	if alive(pid) {
		t.Error("the stopped process is still there")
	}
	writes(t, s, batch("ok", 0, 1))
	if st := r.Status()[0]; !strings.Contains(st.LastError, "no health report") {
		t.Errorf("error %q", st.LastError)
	}
}

func TestHangingCallEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	r := start(t, config(hanging(instance("p", "probe", nil), 500*time.Millisecond)))
	s := r.sink(t)
	begin := time.Now()
	_, err := s.Write(t.Context(), batch("hang-1", 0, 1))
	var e *sdk.Error
	if !errors.As(err, &e) || e.Code != "deadline_exceeded" || e.Class != sdk.ClassTransient {
		t.Errorf("error %v", err)
	}
	if d := time.Since(begin); d > patience {
		t.Errorf("took %s", d)
	}
	writes(t, s, batch("ok", 1, 1))
	if st := r.Status()[0]; st.Restarts != 0 {
		t.Errorf("a process that is well was restarted: %+v", st)
	}
}

func TestHangingCallsDoNotKillHealthyProcess(t *testing.T) {
	t.Parallel()
	r := start(t, config(hanging(instance("p", "probe", nil), time.Second)))
	s := r.sink(t)
	var wg sync.WaitGroup
	for n := range 5 { // more than it takes to raise a suspicion
		wg.Go(func() { _, _ = s.Write(t.Context(), batch(fmt.Sprintf("hang-%d", n), 0, 1)) })
	}
	wg.Wait()
	writes(t, s, batch("ok", 1, 1))
	if st := r.Status()[0]; st.Restarts != 0 {
		t.Errorf("it was restarted: %+v", st)
	}
}

func TestProcessThatIgnoresShutdownIsKilled(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]string{"close hangs": "stubborn", "write hangs": "probe", "it is frozen": "probe"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := filepath.Join(t.TempDir(), "trace")
			r := start(t, config(impatient("p", use, map[string]any{"trace": trace})))
			s := r.sink(t)
			pid := r.Status()[0].PID
			switch name {
			case "write hangs":
				go func() { _, _ = s.Write(context.WithoutCancel(t.Context()), batch("hang-1", 0, 1)) }()
				waitFor(trace, "write hang-1")
			case "it is frozen":
				kill(t, pid, syscall.SIGSTOP)
			}
			begin := time.Now()
			if err := r.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(begin); d > patience || alive(pid) {
				t.Errorf("took %s, alive %t", d, alive(pid))
			}
		})
	}
}

func TestStopKillsWhenContextEnds(t *testing.T) {
	t.Parallel()
	c := instance("p", "stubborn", nil)
	c.Timeouts.Flush, c.Timeouts.Stop = time.Hour, time.Hour
	r := start(t, config(c))
	r.sink(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := r.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > patience {
		t.Errorf("took %s", d)
	}
}

func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	c := instance("p", "silent", nil)
	c.Timeouts.Start = time.Hour
	r := start(t, config(c))
	r.becomes(t, lifecycle.StateStarting)
	begin := time.Now()
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > patience {
		t.Errorf("took %s", d)
	}
}

func TestChildrenOfPluginAreKilled(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "forker", map[string]any{"trace": trace})))
	r.sink(t)
	var children []int
	text, _ := os.ReadFile(trace)
	for line := range strings.Lines(string(text)) {
		if pid, ok := strings.CutPrefix(strings.TrimSpace(line), "child "); ok {
			n, _ := strconv.Atoi(pid)
			children = append(children, n)
		}
	}
	if len(children) != 2 {
		t.Fatalf("children: %s", text)
	}
	t.Cleanup(func() { _ = syscall.Kill(children[1], syscall.SIGKILL) })
	begin := time.Now()
	kill(t, r.Status()[0].PID, syscall.SIGKILL)
	eventually(t, func() string {
		if r.Status()[0].Restarts != 1 || r.Status()[0].State != lifecycle.StateReady {
			return "not restarted"
		}
		return ""
	})
	if d := time.Since(begin); d > patience {
		t.Errorf("the restart took %s", d)
	}
	for i, pid := range children {
		if alive(pid) && runtime.GOOS == "linux" || alive(pid) && i == 0 {
			t.Errorf("child %d of 2 is alive", i+1)
		}
	}
}

// The connection of a process that dies is gone at once, and its exit status is known when
// its output is read: failed health checks in between do not hide why it died.
func TestExitExplainsFailedHealthChecks(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{
		"known after the checks":              0,
		"known after the process is given up": 2 * process.ExitGrace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(instance("p", "probe", nil))
			cfg.HealthInterval = 5 * time.Millisecond

			// The last line of the output is read only after enough checks have failed.
			var r *run
			running := make(chan struct{})
			slow := zap.Hooks(func(e zapcore.Entry) error {
				if !strings.HasPrefix(e.Message, "panic: ") {
					return nil
				}
				<-running
				for r.healthChecks(t, false) < 3 && t.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(late)
				return nil
			})
			r = start(t, cfg, slow)
			close(running)

			s := r.sink(t)
			_, _ = s.Write(t.Context(), batch("die-1", 0, 1))
			eventually(t, func() string {
				if st := r.Status()[0]; st.Restarts != 1 || st.State != lifecycle.StateReady {
					return fmt.Sprintf("%+v", st)
				}
				return ""
			})
			if st := r.Status()[0]; !strings.Contains(st.LastError, "panic: no luck in a goroutine") {
				t.Errorf("error %q, exit %+v", st.LastError, st.Exit)
			}
		})
	}
}

func TestQuarantineAndRelease(t *testing.T) {
	t.Parallel()
	cfg := config(instance("p", "crash", nil))
	cfg.Restart.QuarantineExits = 3
	r := start(t, cfg)
	st := r.becomes(t, lifecycle.StateQuarantined)
	if len(st.Exit.Stderr) == 0 && st.Exit.Code != 3 && !strings.Contains(st.LastError, "code 3") {
		t.Errorf("status %+v", st)
	}
	if st.NextStart == nil || time.Until(*st.NextStart) < 9*time.Minute || time.Until(*st.NextStart) > 10*time.Minute {
		t.Errorf("the next start is at %v", st.NextStart)
	}
	before := len(r.logs.FilterMessage("plugin restart scheduled").All())
	if before < 3 { // the pauses reach their maximum first
		t.Errorf("%d restarts before the quarantine", before)
	}
	if !r.Release("p") || r.Release("q") {
		t.Error("release")
	}
	eventually(t, func() string {
		if len(r.logs.FilterMessage("plugin restart scheduled").All()) < 2*before {
			return "not tried again"
		}
		return ""
	})
	r.becomes(t, lifecycle.StateQuarantined)
}

func TestQuarantineEndsByItself(t *testing.T) {
	t.Parallel()
	cfg := config(instance("p", "crash", nil))
	cfg.Restart.QuarantineExits, cfg.Restart.QuarantineFor = 3, 20*time.Millisecond
	r := start(t, cfg)
	var last time.Duration
	for n := 1; n <= 3; n++ {
		eventually(t, func() string {
			entries := r.logs.FilterMessage("plugin quarantined").All()
			if len(entries) < n {
				return fmt.Sprintf("%d quarantines", len(entries))
			}
			last = entries[n-1].ContextMap()["for"].(time.Duration)
			return ""
		})
		if want := 20 * time.Millisecond << (n - 1); last != want {
			t.Errorf("quarantine %d lasts %s, want %s", n, last, want)
		}
	}
}

// Exits before a committed batch, and exits whose cause is known, do not lead to a
// quarantine; also not those of another instance in the same process.
func TestProgressPreventsQuarantine(t *testing.T) {
	t.Parallel()
	for _, forgive := range []bool{false, true} {
		t.Run(fmt.Sprint(forgive), func(t *testing.T) {
			t.Parallel()
			cfg := config(instance("p", "probe", nil), instance("idle", "probe", nil))
			if !forgive {
				cfg.Instances = cfg.Instances[:1]
			}
			cfg.Restart.QuarantineExits = 2
			r := start(t, cfg)
			s := r.Sinks()[0]
			for n := range uint64(12) {
				ready(t, r, s)
				if n%3 != 0 {
					writes(t, s, batch(fmt.Sprint("ok-", n), n, 1))
				}
				ready(t, r, s)
				_, _ = s.Write(t.Context(), batch(fmt.Sprint("exit-", n), n, 1))
				if forgive {
					s.ForgiveExits()
				}
			}
			writes(t, s, batch("ok", 20, 1))
			if n := r.logs.FilterMessage("plugin quarantined").Len(); n > 0 {
				t.Errorf("%d quarantines", n)
			}
		})
	}
}

func TestRestartAlwaysHasNoQuarantine(t *testing.T) {
	t.Parallel()
	c := instance("p", "crash", nil)
	c.Restart = settings.RestartAlways
	cfg := config(c)
	cfg.Restart.QuarantineExits = 2
	r := start(t, cfg)
	eventually(t, func() string {
		if n := r.logs.FilterMessage("plugin restart scheduled").Len(); n < 10 {
			return fmt.Sprintf("%d restarts", n)
		}
		return ""
	})
	if n := r.logs.FilterMessage("plugin quarantined").Len(); n > 0 {
		t.Errorf("%d quarantines", n)
	}
}

func TestRestartNever(t *testing.T) {
	t.Parallel()
	c := instance("p", "probe", nil)
	c.Restart = settings.RestartNever
	r := start(t, config(c))
	r.sink(t)
	kill(t, r.Status()[0].PID, syscall.SIGKILL)
	if st := r.becomes(t, lifecycle.StateStopped); st.Restarts != 0 || st.Reason != "signal" {
		t.Errorf("status %+v", st)
	}
}

func TestNoPluginOutlivesKilledHost(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"probe", "stubborn"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, "host", name)
			cmd.Dir = t.TempDir()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			pid, aerr := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || aerr != nil || !alive(pid) {
				t.Fatalf("%q %v %v", line, err, aerr)
			}
			kill(t, cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
			eventually(t, func() string {
				if alive(pid) {
					return "the plugin is still there"
				}
				return ""
			})
		})
	}
}

// hostToBeKilled is a host in a process of its own, with one instance.
func hostToBeKilled(name string) {
	h, err := host.New(config(instance("p", name, nil)), host.Deps{DataDir: ".", Bundled: bundled, Log: zap.NewNop()})
	if err != nil {
		panic(err)
	}
	if err := h.Start(context.Background()); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Sinks()[0].Ready(ctx); err != nil {
		panic(err)
	}
	fmt.Println(h.Status()[0].PID)
	time.Sleep(2 * patience)
}
