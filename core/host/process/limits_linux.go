package process

import (
	"errors"
	"fmt"
	"math"

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
