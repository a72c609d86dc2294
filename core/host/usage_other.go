//go:build unix && !linux

package host

import "time"

// usage is not known here.
func usage(int) (rss int64, cpu time.Duration, ok bool) { return 0, 0, false }
