//go:build unix && !linux

package process

import (
	"errors"
	"syscall"

	"github.com/guidonhq/guidon/core/host/settings"
)

// restrict sets the priority. It fails for the other limits, if they are not the
// default: only Linux can limit another process.
func restrict(pid int, l settings.Limits) error {
	problem := syscall.Setpriority(syscall.PRIO_PGRP, pid, l.Nice)
	l.Nice, l.CoreDumps, l.User = 0, false, ""
	if (l != settings.Limits{} && l != settings.Limits{MemoryBytes: settings.Default().Limits.MemoryBytes}) {
		problem = errors.Join(problem, errors.New("limits other than nice are known on Linux only"))
	}
	return problem
}
