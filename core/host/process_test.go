package host_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
)

func TestProcessLimits(t *testing.T) {
	t.Parallel()
	c := instance("p", "environ", map[string]any{"trace": t.TempDir() + "/trace"})
	c.Limits = settings.Limits{OpenFiles: 345, MemoryBytes: 1 << 40, CPUTime: 5*time.Hour + time.Millisecond}
	r := start(t, config(c))
	r.sink(t)
	text, err := os.ReadFile("/proc/" + strconv.Itoa(r.Status()[0].PID) + "/limits")
	if err != nil {
		t.Log("limits are for Linux")
		return
	}
	for name, want := range map[string]string{
		"Max open files": "345", "Max core file size": "0", "Max data size": "1099511627776", "Max cpu time": "18001",
	} {
		line := regexp.MustCompile(name + ` +(\S+)`).FindStringSubmatch(string(text))
		if line == nil || line[1] != want {
			t.Errorf("%s: %v, want %s", name, line, want)
		}
	}
	if env, _ := os.ReadFile(c.Config["trace"].(string)); !strings.Contains(string(env), "GOMEMLIMIT=989560464993") {
		t.Errorf("environment: %s", env)
	}
}

func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	cfg := config(instance("p", "ok", nil))
	cfg.Limits = settings.Default().Limits
	r := start(t, cfg)
	r.sink(t)
	pid := strconv.Itoa(r.Status()[0].PID)
	text, err := os.ReadFile("/proc/" + pid + "/limits")
	if err != nil {
		t.Log("limits are for Linux")
		return
	}
	if !regexp.MustCompile(`Max data size +1073741824 `).Match(text) {
		t.Errorf("limits: %s", text)
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	// The priority is field 19; the name of the program in field 2 ends with ).
	_, rest, _ := strings.Cut(string(stat), ") ")
	if nice := strings.Fields(rest)[16]; nice != "5" {
		t.Errorf("nice %s", nice)
	}
}

// The limit is ours, so the status names it. The stack of a Go program at its end is longer
// than what is kept of its output.
func TestExitAtTheMemoryLimitIsNamed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || raceDetector {
		t.Log("limits are for Linux, and the race detector needs more memory")
		return
	}
	c := instance("p", "probe", nil)
	c.Limits.MemoryBytes = 256 << 20
	r := start(t, config(c))
	s := r.sink(t)
	_, _ = s.Write(t.Context(), batch("gobble-1", 0, 1))
	eventually(t, func() string {
		if st := r.Status()[0]; st.Exit == nil || !strings.Contains(st.LastError, "exited") {
			return fmt.Sprintf("exit %+v, last error %q", st.Exit, st.LastError)
		}
		return ""
	})
	st := r.Status()[0]
	if text := fmt.Sprint(st.Exit); st.Exit.Reason() != "memory_limit" || !strings.Contains(text, "at its memory limit of 256 MiB (limits.memory_bytes); last line: fatal error: ") {
		t.Errorf("exit %s, last error %q", text, st.LastError)
	}
}

func TestExitIsExplained(t *testing.T) {
	t.Parallel()
	tests := []struct{ use, says string }{
		{"starved", "exited with code 2 for want of memory while starting; last line: fatal error: runtime: out of memory"},
		{"killed", "was ended by a signal: killed (not by the server: by a person, or by the kernel for want of memory) while starting"},
	}
	for _, tt := range tests {
		t.Run(tt.use, func(t *testing.T) {
			t.Parallel()
			cfg := config(instance("p", tt.use, nil))
			cfg.Restart.QuarantineExits, cfg.Limits = 2, settings.Limits{} // the process limits itself
			r := start(t, cfg)
			st := r.becomes(t, lifecycle.StateQuarantined)
			if !strings.Contains(st.LastError, tt.says) {
				t.Errorf("last error %q", st.LastError)
			}
		})
	}
}
