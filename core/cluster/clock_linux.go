package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time of a clock that is never set and that counts the time in
// which the machine was suspended.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}
