package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mountInfo = "/proc/self/mountinfo"
	ownGroup  = "/proc/self/cgroup"

	// Names of the groups that the server makes below its own.
	leafName     = "guidon-server"
	pluginPrefix = "guidon-plugin-"
)

// Parent is the group of the server, below which it makes others. A nil Parent
// makes none. It is safe for concurrent use.
type Parent struct {
	dir         string
	controllers []string // memory, pids and cpu, as far as groups below dir have them
	made        atomic.Int64
}

// Find returns the group of this process if it is delegated to it, else nil. It
// moves the process into a group below that if this is needed for limits: a group
// with limits for its children has no processes of its own. It removes empty
// groups that an earlier server has left.
func Find() *Parent {
	dir := delegated()
	if dir == "" {
		return nil
	}
	p := &Parent{dir: dir}
	removeEmpty(dir)
	for _, name := range []string{"memory", "pids", "cpu"} {
		if p.enable(name) == nil {
			p.controllers = append(p.controllers, name)
		}
	}
	probe, err := p.New(Limits{})
	if err != nil {
		return nil
	}
	probe.Remove()
	return p
}

// delegated returns the directory of the own group, "" if it is not to be used.
// Root may write everywhere, so there the mark of systemd counts, or a group
// that is the root of what the process sees, as in a container.
func delegated() string {
	mount := mountPoint()
	dir := own(mount)
	if dir == "" {
		return ""
	}
	if filepath.Base(dir) == leafName { // moved by an earlier Find
		dir = filepath.Dir(dir)
	}
	if unix.Access(dir, unix.W_OK) != nil || os.Geteuid() == 0 && dir != mount && !marked(dir) {
		return ""
	}
	return dir
}

// own returns the directory of the group of this process below the mount point, ""
// if there is none.
func own(mount string) string {
	text, err := os.ReadFile(ownGroup)
	if err != nil || mount == "" {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if ok && path != "" && !strings.Contains(path, "..") {
			return filepath.Join(mount, path)
		}
	}
	return ""
}

// OutOfMemoryKills returns how often the kernel has killed a process of the group
// of this process for want of memory. known is false without a count.
func OutOfMemoryKills() (n int64, known bool) {
	dir := own(mountPoint())
	if dir == "" {
		return 0, false
	}
	return field(dir, "memory.events", "oom_kill")
}

// mountPoint returns where cgroup v2 is mounted, "" if it is not.
func mountPoint() string {
	text, err := os.ReadFile(mountInfo)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4]
		}
	}
	return ""
}

// marked reports whether systemd has delegated a group.
func marked(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// enable gives the groups below the parent a controller.
func (p *Parent) enable(controller string) error {
	available, err := os.ReadFile(filepath.Join(p.dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(available)), controller) {
		return errors.ErrUnsupported
	}
	err = write(p.dir, "cgroup.subtree_control", "+"+controller)
	if errors.Is(err, unix.EBUSY) && p.leave() == nil {
		err = write(p.dir, "cgroup.subtree_control", "+"+controller)
	}
	return err
}

// leave moves this process into a group of its own, if it is alone in the parent.
func (p *Parent) leave() error {
	text, err := os.ReadFile(filepath.Join(p.dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	own := strconv.Itoa(os.Getpid())
	if list := strings.Fields(string(text)); len(list) != 1 || list[0] != own {
		return errors.New("other processes are in the group")
	}
	leaf := filepath.Join(p.dir, leafName)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return write(leaf, "cgroup.procs", own)
}

// Group is a group for one process and what it starts. A nil Group does nothing.
type Group struct {
	dir    string
	file   *os.File
	memory bool
}

// New makes a group with limits, as far as the parent has controllers for them.
func (p *Parent) New(l Limits) (*Group, error) {
	dir := filepath.Join(p.dir, fmt.Sprintf("%s%d-%d", pluginPrefix, os.Getpid(), p.made.Add(1)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	g := &Group{dir: dir, memory: slices.Contains(p.controllers, "memory")}
	err := g.limit(p.controllers, l)
	if err == nil {
		g.file, err = os.Open(dir)
	}
	if err != nil {
		g.Remove()
		return nil, fmt.Errorf("limit a control group: %w", err)
	}
	return g, nil
}

func (g *Group) limit(controllers []string, l Limits) error {
	var problems []error
	set := func(controller, file string, value int) {
		if value > 0 && slices.Contains(controllers, controller) {
			problems = append(problems, write(g.dir, file, strconv.Itoa(value)))
		}
	}
	set("memory", "memory.max", l.MemoryBytes)
	if g.memory && l.MemoryBytes > 0 {
		_ = write(g.dir, "memory.swap.max", "0") // missing without swap
	}
	set("pids", "pids.max", l.Processes)
	set("cpu", "cpu.weight", l.Weight)
	return errors.Join(problems...)
}

// Hold makes a process that starts with a start in the group.
func (g *Group) Hold(a *syscall.SysProcAttr) {
	if g != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(g.file.Fd())
	}
}

// LimitsMemory reports whether the group enforces Limits.MemoryBytes.
func (g *Group) LimitsMemory() bool { return g != nil && g.memory }

// OutOfMemoryKills returns how many processes of the group the kernel has killed
// for want of memory. known is false without a count.
func (g *Group) OutOfMemoryKills() (n int64, known bool) {
	if !g.LimitsMemory() {
		return 0, false
	}
	return field(g.dir, "memory.events", "oom_kill")
}

// Kill kills all processes of the group and waits for their end, at most a
// second. It returns whether there were any.
func (g *Group) Kill() bool {
	if g == nil {
		return false
	}
	if n, known := field(g.dir, "cgroup.events", "populated"); !known || n == 0 {
		return false
	}
	_ = write(g.dir, "cgroup.kill", "1")
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if n, known := field(g.dir, "cgroup.events", "populated"); !known || n == 0 {
			break
		}
	}
	return true
}

// field returns a number of a file with a name and a value in each line.
func field(dir, file, name string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(string(line)), name+" "); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// Remove removes the group. Its processes must have ended.
func (g *Group) Remove() {
	if g == nil {
		return
	}
	if g.file != nil {
		_ = g.file.Close()
	}
	_ = os.Remove(g.dir)
}

// removeEmpty removes the groups of servers that were killed.
func removeEmpty(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, pluginPrefix+"*"))
	for _, path := range old {
		var pid, n int
		if _, err := fmt.Sscanf(filepath.Base(path), pluginPrefix+"%d-%d", &pid, &n); err == nil && unix.Kill(pid, 0) != nil {
			_ = os.Remove(path)
		}
	}
}

func write(dir, file, text string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(text), 0)
}
