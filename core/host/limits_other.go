//go:build unix && !linux

package host

import "errors"

// restrict cannot limit another process here.
func restrict(_ int, l LimitConfig) error {
	if (l != LimitConfig{} && l != LimitConfig{CoreDumps: true}) {
		return errors.New("limits are known on Linux only")
	}
	return nil
}

// outOfMemoryKills is not known here.
func outOfMemoryKills() (n int64, known bool) { return 0, false }
