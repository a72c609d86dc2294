package place

import "golang.org/x/sys/unix"

// The lowest priority of the best effort class for input and output of a thread.
const (
	ioprioWhoProcess = 1
	ioprioLowest     = 2<<13 | 7
)

// LowerPriority gives the current thread the lowest priority for the processor and the
// disk. The caller locks its goroutine to the thread for ever.
func LowerPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19) // 0 is the thread
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, ioprioLowest)
}
