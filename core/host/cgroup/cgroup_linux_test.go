package cgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guidonhq/guidon/core/host/cgroup"
)

// A process that leaves its group and clears its environment stays in the control
// group. Systems without a delegated group have nothing to try.
func TestGroupHoldsDescendants(t *testing.T) {
	t.Parallel()
	parent := cgroup.Find()
	if parent == nil {
		t.Log("no control group is delegated to this process")
		return
	}
	g, err := parent.New(cgroup.Limits{MemoryBytes: 64 << 20, Processes: 50, Weight: 50})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Remove()
	out := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("/bin/sh", "-c", `env -i setsid sh -c 'echo $$ >`+out+`.part; mv `+out+`.part `+out+`; exec sleep 600' >/dev/null 2>&1 </dev/null & while [ ! -s `+out+` ]; do sleep 0.01; done`)
	cmd.SysProcAttr = new(syscall.SysProcAttr)
	g.Hold(cmd.SysProcAttr)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !g.Kill() {
		t.Error("the group is empty before the kill")
	}
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the descendant is alive: %s", stat)
	}
	if g.Kill() {
		t.Error("the group is not empty after the kill")
	}
}

func TestNothingWithoutGroup(t *testing.T) {
	t.Parallel()
	var g *cgroup.Group
	g.Remove()
	if n, known := g.OutOfMemoryKills(); n != 0 || known || g.LimitsMemory() || g.Kill() {
		t.Error("a nil group does something")
	}
}
