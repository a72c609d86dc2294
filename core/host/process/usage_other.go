//go:build unix && !linux

package process

import "time"

// Usage returns nothing on this platform.
func Usage(int) (rss int64, cpu time.Duration, ok bool) { return 0, 0, false }
