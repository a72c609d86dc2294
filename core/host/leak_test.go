package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/sdk"
)

// Not parallel: it counts the goroutines of the whole test binary.
func TestNoGoroutineOutlivesHost(t *testing.T) {
	_, said := byHand(t, "probe", sdk.DebugKey+"=1")
	foreign := reattached(t, said, nil)
	foreign.Name = "foreign"
	lost := foreign
	lost.Name, lost.Reattach.Socket = "lost", filepath.Join(t.TempDir(), "missing")
	before := goleak.IgnoreCurrent()
	files := descriptors(t)
	r := start(t, config(
		instance("good", "probe", nil), instance("bad", "crash", nil), instance("misfit", "probe", map[string]any{"x": 1}), foreign, lost,
	))
	s := r.sink(t)
	write(t, s, batch("ok", 0, 1))
	kill(t, r.Status()[0].PID, syscall.SIGKILL)
	eventually(t, func() string {
		if st := r.Status(); st[0].Restarts != 1 || st[0].State != lifecycle.StateReady || st[1].State != lifecycle.StateQuarantined || st[3].State != lifecycle.StateReady {
			return "not there yet"
		}
		return ""
	})
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if err := goleak.Find(before); err != nil {
			return err.Error()
		}
		if now := descriptors(t); now > files {
			return fmt.Sprintf("%d files are open, there were %d", now, files)
		}
		return ""
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
