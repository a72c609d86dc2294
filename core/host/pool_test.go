package host_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// many are n instances of one plugin.
func many(n int, pluginConfig map[string]any) []settings.Instance {
	out := make([]settings.Instance, n)
	for i := range out {
		out[i] = instance(fmt.Sprintf("p%d", i), "probe", pluginConfig)
	}
	return out
}

// pids are the processes of the instances that are ready, once all are.
func (r *run) pids(t *testing.T, except ...int) map[int]int {
	t.Helper()
	var out map[int]int
	eventually(t, func() string {
		out = map[int]int{}
		for _, st := range r.Status() {
			if st.State != lifecycle.StateReady {
				return fmt.Sprintf("%s is %s: %s", st.Name, st.State, st.LastError)
			}
			if st.PID == 0 {
				return st.Name + " has no process"
			}
			for _, pid := range except {
				if st.PID == pid {
					return fmt.Sprintf("%s is still in %d", st.Name, pid)
				}
			}
			out[st.PID]++
		}
		return ""
	})
	return out
}

// A process without a network serves no instance that has one, and the reverse.
func TestInstancesWithAndWithoutNetworkShareNoProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("network: none works on Linux only")
	}
	instances := many(4, nil)
	instances[1].Network, instances[3].Network = settings.NetworkNone, settings.NetworkNone
	r := start(t, config(instances...))
	r.pids(t)
	of := r.Status()
	if of[0].PID != of[2].PID || of[1].PID != of[3].PID || of[0].PID == of[1].PID {
		t.Errorf("processes %d %d %d %d", of[0].PID, of[1].PID, of[2].PID, of[3].PID)
	}
}

func TestInstancesShareOneProcess(t *testing.T) {
	t.Parallel()
	r := start(t, config(many(20, nil)...))
	if pids := r.pids(t); len(pids) != 1 {
		t.Fatalf("processes: %v", pids)
	}
	for _, s := range r.Sinks() {
		write(t, s, batch("ok-1", 0, 3))
	}

	t.Run("a crash starts all of them again, in one process", func(t *testing.T) {
		pid := r.Status()[0].PID
		kill(t, pid, syscall.SIGKILL)
		if pids := r.pids(t, pid); len(pids) != 1 {
			t.Errorf("processes: %v", pids)
		}
		for _, s := range r.Sinks() {
			write(t, s, batch("ok-2", 3, 1))
		}
	})

	t.Run("the config of one is no matter of the others", func(t *testing.T) {
		before := r.Status()
		next := many(20, nil)
		next[7].Config = map[string]any{"number": 7}
		if err := r.Apply(t.Context(), config(next...)); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string {
			if st := r.Status()[7]; st.Generation != 2 || st.State != lifecycle.StateReady {
				return string(st.State)
			}
			return ""
		})
		for i, st := range r.Status() {
			if i != 7 && (st.PID != before[i].PID || !st.Since.Equal(before[i].Since) || st.Restarts != before[i].Restarts) {
				t.Errorf("%s was disturbed: %+v", st.Name, st)
			}
		}
		write(t, r.Sinks()[7], batch("ok-3", 4, 1))
		write(t, r.Sinks()[6], batch("ok-3", 4, 1))
	})

	t.Run("one that is gone leaves the process to the others", func(t *testing.T) {
		before := r.Status()
		if err := r.Apply(t.Context(), config(many(3, nil)...)); err != nil {
			t.Fatal(err)
		}
		for i, st := range r.Status() {
			if st.PID != before[i].PID || st.State != lifecycle.StateReady {
				t.Errorf("%s was disturbed: %+v", st.Name, st)
			}
			write(t, r.Sinks()[i], batch("ok-4", 5, 1))
		}
	})
}

func TestInstancesThatDoNotShare(t *testing.T) {
	t.Parallel()
	isolated := many(3, nil)
	isolated[1].Isolated = true
	environment := many(2, nil)
	environment[1].Env.Set = map[string]string{"A": "b"}
	limits := many(2, nil)
	limits[1].Limits.OpenFiles = 99
	tests := []struct {
		name      string
		instances []settings.Instance
		processes int
	}{
		{"an isolated instance", isolated, 2},
		{"one with another environment", environment, 2},
		{"one with other limits", limits, 2},
		{"instances of different plugins", []settings.Instance{instance("a", "probe", nil), instance("b", "probe2", nil)}, 2},
		{"instances of a plugin that takes one only", []settings.Instance{instance("a", "single", nil), instance("b", "single", nil)}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, config(tt.instances...))
			if pids := r.pids(t); len(pids) != tt.processes {
				t.Errorf("processes: %v", pids)
			}
		})
	}
}

func TestFrozenProcessIsReplacedForAllInstances(t *testing.T) {
	t.Parallel()
	instances := many(4, nil)
	for i := range instances {
		instances[i].Timeouts = impatient("p", "probe", nil).Timeouts
	}
	r := start(t, config(instances...))
	r.pids(t)
	pid := r.Status()[0].PID
	kill(t, pid, syscall.SIGSTOP)
	if pids := r.pids(t, pid); len(pids) != 1 {
		t.Errorf("processes: %v", pids)
	}
}

func TestHangingInstanceDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	c := many(2, map[string]any{"trace": trace})
	for i := range c {
		c[i] = hanging(c[i], patience)
	}
	c[0].Timeouts.Call = time.Second
	r := start(t, config(c...))
	r.pids(t)
	pid := r.Status()[0].PID
	hung := make(chan error, 1)
	go func() {
		_, err := r.Sinks()[0].Write(t.Context(), batch("hang-1", 0, 1))
		hung <- err
	}()
	waitFor(trace, "write hang-1")
	next := slices.Clone(c)
	next[0].Timeouts.Call = patience
	next[0].Config = map[string]any{"trace": trace, "number": 1}
	if err := r.Apply(t.Context(), config(next...)); err != nil {
		t.Fatal(err)
	}
	r.serves(t, 2)
	write(t, r.Sinks()[1], batch("ok-1", 0, 1))
	write(t, r.Sinks()[0], batch("ok-1", 0, 1))
	var e *sdk.Error
	if err := <-hung; !errors.As(err, &e) || e.Code != "deadline_exceeded" {
		t.Errorf("the call that hung: %v", err)
	}
	if st := r.Status()[1]; st.PID != pid || st.Restarts != 0 {
		t.Errorf("the neighbour was disturbed: %+v", st)
	}
}
