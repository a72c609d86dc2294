package db

import "golang.org/x/sys/unix"

// lowerPriority gives the current thread the lowest priority.
func lowerPriority() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) } // 0 is the thread
