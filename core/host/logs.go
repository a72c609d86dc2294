package host

import "github.com/guidonhq/guidon/core/host/process"

// Logs returns the last n log lines of an instance, oldest first, and whether the
// instance exists.
func (h *Host) Logs(instance string, n int) ([]process.Line, bool) {
	if h.find(instance) == nil {
		return nil, false
	}
	return h.logs.Of(instance).Last(n), true
}
