//go:build unix && !linux

package process

import (
	"errors"

	"github.com/guidonhq/guidon/core/host/settings"
)

// restrict fails for any limit: only Linux can limit another process.
func restrict(_ int, l settings.Limits) error {
	if (l != settings.Limits{} && l != settings.Limits{CoreDumps: true}) {
		return errors.New("limits are known on Linux only")
	}
	return nil
}

// outOfMemoryKills returns no count on this platform.
func outOfMemoryKills() (n int64, known bool) { return 0, false }
