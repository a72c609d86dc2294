//go:build !linux

package cluster

import "time"

// monotonic returns the time of a clock that is never set.
func monotonic() time.Duration { return time.Since(processStart) }
