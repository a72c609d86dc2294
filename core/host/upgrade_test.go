package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/reloadplan"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/sdk"
)

// writer writes numbered batches one after the other, each until it is
// committed, as delivery does.
type writer struct {
	sink    *host.SinkInstance
	wrote   atomic.Uint64
	refused atomic.Uint64
	done    chan error
	stop    context.CancelFunc
}

func startWriter(t *testing.T, s *host.SinkInstance) *writer {
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{sink: s, done: make(chan error, 1), stop: cancel}
	go func() { w.done <- w.run(ctx) }()
	return w
}

func (w *writer) run(ctx context.Context) error {
	for n := uint64(1); ctx.Err() == nil; n++ {
		b := batch(fmt.Sprintf("ok-%d", n), n-1, 1)
		for {
			got, err := w.sink.Write(context.WithoutCancel(ctx), b)
			if err == nil && got.Outcome == sdk.Committed {
				w.wrote.Store(n)
				break
			}
			w.refused.Add(1)
			var e *sdk.Error
			if err == nil && got.Outcome != sdk.Rejected || err != nil && !errors.As(err, &e) {
				return fmt.Errorf("batch %d: %+v, %w", n, got, err)
			}
			if err := w.sink.Ready(ctx); err != nil {
				return fmt.Errorf("batch %d was not written: %w", n, err)
			}
		}
	}
	return nil
}

// serves waits until the instance serves with a generation and is ready.
func (r *run) serves(t *testing.T, generation uint64) status.Status {
	t.Helper()
	var st status.Status
	eventually(t, func() string {
		if st = r.Status()[0]; st.Generation == generation && st.State == lifecycle.StateReady {
			return ""
		}
		return fmt.Sprintf("is %s with generation %d, want %d: %s", st.State, st.Generation, generation, st.LastError)
	})
	return st
}

func TestUpgradesLoseNoBatch(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	settings := func(n int) settings.Instance {
		return instance("p", "probe", map[string]any{"trace": trace, "labels": map[string]any{"n": fmt.Sprint(n)}})
	}
	r := start(t, config(settings(0)))
	s := r.sink(t)
	w := startWriter(t, s)
	swaps := 20
	if testing.Short() {
		swaps = 6
	}
	for n := 1; n <= swaps; n++ {
		if err := r.Apply(t.Context(), config(settings(n))); err != nil {
			t.Fatal(err)
		}
		r.serves(t, uint64(n+1))
		at := w.wrote.Load()
		eventually(t, func() string {
			if w.wrote.Load() <= at {
				return "nothing is written"
			}
			return ""
		})
	}
	w.stop()
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(trace)
	seen := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		if id, ok := strings.CutPrefix(line, "write ok-"); ok {
			number, _, _ := strings.Cut(id, " ")
			seen[number]++
		}
	}
	for n := uint64(1); n <= w.wrote.Load(); n++ {
		if seen[fmt.Sprint(n)] != 1 {
			t.Errorf("batch %d arrived %d times", n, seen[fmt.Sprint(n)])
		}
	}
	if st := r.Status()[0]; st.Restarts != 0 || w.refused.Load() != 0 {
		t.Errorf("%d restarts, %d calls refused: %+v", st.Restarts, w.refused.Load(), st)
	}
	if strings.Count(string(raw), "open p") != swaps+1 {
		t.Errorf("opened %d times", strings.Count(string(raw), "open p"))
	}
	eventually(t, func() string {
		raw, _ := os.ReadFile(trace)
		if n := strings.Count(string(raw), "close\n"); n != swaps {
			return fmt.Sprintf("%d old generations were closed", n)
		}
		return ""
	})
}

func TestFailedUpgradeKeepsOldGeneration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, says string
		change     func(*settings.Instance)
	}{
		{"a config the plugin refuses", "number", set("number", 99)},
		{"a plugin that crashes", "find my own head", use("crash")},
		{"a plugin that is another", "says that it is", use("impostor")},
		{"an unknown plugin", "no bundled plugin", use("unknown")},
		{"a target that is wrong", "wrong", use("openconfig")},
		{"a file without a checksum", "sha256 is missing", func(c *settings.Instance) { c.Use = "/bin/true" }},
		{"a reference to nothing", "not set", set("secret", "${env:GUIDON_TEST_NO_SUCH_THING}")},
		{"a plugin without an answer to open", "", use("openpanic")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, config(instance("p", "probe", nil)))
			s := r.sink(t)
			pid := r.Status()[0].PID
			next := instance("p", "probe", nil)
			tt.change(&next)
			if err := r.Apply(t.Context(), config(next)); err != nil {
				t.Fatal(err)
			}
			st := r.becomes(t, lifecycle.StateDegraded)
			if st.Reason != "upgrade_failed" || st.PID != pid || st.Generation != 1 || !strings.Contains(st.LastError, tt.says) {
				t.Errorf("status %+v", st)
			}
			write(t, s, batch("ok-1", 0, 1))
			// A death does not bring the broken one into service.
			kill(t, pid, syscall.SIGKILL)
			eventually(t, func() string {
				if st := r.Status()[0]; st.State != lifecycle.StateDegraded || st.PID == pid || st.PID == 0 || st.Generation != 1 {
					return fmt.Sprintf("%s, pid %d, generation %d, %s", st.State, st.PID, st.Generation, st.LastError)
				}
				return ""
			})
			write(t, s, batch("ok-2", 1, 1))
			// The way back is a config that works.
			if err := r.Apply(t.Context(), config(instance("p", "probe", map[string]any{"number": 3}))); err != nil {
				t.Fatal(err)
			}
			r.serves(t, 3)
			write(t, s, batch("ok-3", 2, 1))
		})
	}
}

// The copy of an executable may take longer than the change of the config: the next
// reload upgrades, also when the config has not changed since.
func TestReloadTriesAFailedUpgradeAgain(t *testing.T) {
	t.Parallel()
	path, digest := acme(t, "acme")
	c := instance("p", path, nil)
	c.SHA256 = digest
	r := start(t, config(c))
	r.sink(t)
	next, digest := acme(t, "acme")
	text, err := os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "# version 2\n"...)
	sum := sha256.Sum256(text)
	c.Use, c.SHA256 = next, hex.EncodeToString(sum[:])
	if err := os.WriteFile(next, text[:len(text)/2], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	if st := r.becomes(t, lifecycle.StateDegraded); st.Reason != "upgrade_failed" || st.SHA256 != digest {
		t.Errorf("status %+v", st)
	}
	if err := os.WriteFile(next, text, 0o700); err != nil {
		t.Fatal(err)
	}
	plan, err := r.Plan(config(c))
	if err != nil || len(plan) != 1 || plan[0].Action != reloadplan.Restart || plan[0].Reason != "its upgrade has failed; it tries again" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	if st := r.serves(t, 2); st.SHA256 != c.SHA256 {
		t.Errorf("status %+v", st)
	}
}

func TestSettingsOutsideTheProcessNeedNoRestart(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	r.sink(t)
	before := r.Status()[0]
	c := instance("p", "probe", nil)
	c.Required, c.Restart = true, settings.RestartAlways
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	if st := r.Status()[0]; st.PID != before.PID || st.Generation != 1 || !st.Required {
		t.Errorf("status %+v", st)
	}
}

func TestChangedSecretFileIsANewConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("first-one"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := instance("p", "probe", map[string]any{"secret": "${file:" + path + "}"})
	r := start(t, config(c))
	r.sink(t)
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	if st := r.Status()[0]; st.Generation != 1 {
		t.Errorf("nothing changed, and yet: %+v", st)
	}
	if err := os.WriteFile(path, []byte("second-one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(t.Context(), config(c)); err != nil {
		t.Fatal(err)
	}
	r.serves(t, 2)
}

func TestExclusivePluginStopsBeforeTheNextStarts(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "exclusive", map[string]any{"trace": trace})))
	s := r.sink(t)
	w := startWriter(t, s)
	for n := 1; n <= 5; n++ {
		if err := r.Apply(t.Context(), config(instance("p", "exclusive", map[string]any{"trace": trace, "number": n}))); err != nil {
			t.Fatal(err)
		}
		r.serves(t, uint64(n+1))
	}
	w.stop()
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(trace)
	open := 0
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "open "):
			open++
		case strings.HasPrefix(line, "close"):
			open--
		}
		if open > 1 {
			t.Fatalf("two were open at once: %s", raw)
		}
	}
}

func TestStopDuringUpgrade(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	for _, next := range []string{"silent", "openslow", "probe"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			c := instance("p", "probe", map[string]any{"trace": trace})
			c.Timeouts.Start = time.Hour
			r := start(t, config(c))
			r.sink(t)
			c.Use = next
			c.Config = map[string]any{"number": 1}
			if err := r.Apply(t.Context(), config(c)); err != nil {
				t.Fatal(err)
			}
			if next != "probe" {
				eventually(t, func() string {
					if r.logs.FilterMessage("plugin upgrade started").Len() == 0 {
						return "no next generation"
					}
					return ""
				})
			}
			if err := r.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := r.Status()[0]; st.State != lifecycle.StateStopped || st.PID != 0 {
				t.Errorf("status %+v", st)
			}
			if left := children(t, r.dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestLatestConfigWins(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	r.sink(t)
	for n := 1; n <= 9; n++ { // faster than a process starts
		if err := r.Apply(t.Context(), config(instance("p", "probe", map[string]any{"number": n}))); err != nil {
			t.Fatal(err)
		}
	}
	r.serves(t, 10)
}
