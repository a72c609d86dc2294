package process

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/host/settings"
)

// restrict sets the limits of a started process; its children inherit them. The
// memory limit is RLIMIT_DATA, which does not count the large reservations of a
// Go runtime.
func restrict(pid int, l settings.Limits) error {
	var problems []error
	set := func(name string, resource int, value uint64) {
		limit := unix.Rlimit{Cur: value, Max: value}
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			problems = append(problems, fmt.Errorf("limit %s: %w", name, err))
		}
	}
	if !l.CoreDumps {
		set("core_dumps", unix.RLIMIT_CORE, 0)
	}
	if l.OpenFiles > 0 {
		set("open_files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles))
	}
	if l.MemoryBytes > 0 {
		set("memory_bytes", unix.RLIMIT_DATA, uint64(l.MemoryBytes))
	}
	if l.CPUTime > 0 {
		set("cpu_time", unix.RLIMIT_CPU, uint64(math.Ceil(l.CPUTime.Seconds())))
	}
	if l.Nice > 0 {
		// The group, as the priority of a process is that of its first thread.
		if err := unix.Setpriority(unix.PRIO_PGRP, pid, l.Nice); err != nil && !errors.Is(err, unix.ESRCH) {
			problems = append(problems, fmt.Errorf("limit nice: %w", err))
		}
	}
	return errors.Join(problems...)
}

// outOfMemoryKills returns how often the kernel has killed a process of the
// server's control group for lack of memory. known is false without a control
// group (cgroup v2).
func outOfMemoryKills() (n int64, known bool) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	group, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "0::")
	if !ok {
		return 0, false
	}
	events, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", group, "memory.events"))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(events) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "oom_kill "); ok {
			n, err = strconv.ParseInt(count, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
