package reader

import "time"

// ScalePause returns the pause d multiplied by the number of partitions that a process
// reads, at most limit and at least d: together their readers act about as often as one
// reader with the pause d. For one partition it is d.
func ScalePause(d time.Duration, partitions int64, limit time.Duration) time.Duration {
	return max(d, min(d*time.Duration(max(1, partitions)), limit))
}
