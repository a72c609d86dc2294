package admin

import (
	"slices"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/status"
)

// LeftOut returns the stored plugin instances that do not run, with the reason in
// LastError. One that has the name of an instance of the config file has the state "".
type LeftOut func() []status.Status

// statusOf returns the status of each instance of the host and of those that are left out.
// An instance that hides a stored one says so in its hint.
func statusOf(h *host.Host, leftOut LeftOut) []status.Status {
	all := h.Status()
	if leftOut == nil {
		return all
	}
	for _, out := range leftOut() {
		i := slices.IndexFunc(all, func(st status.Status) bool { return st.Name == out.Name })
		switch {
		case i < 0 && out.State != "":
			all = append(all, out)
		case i >= 0 && all[i].Hint == "":
			all[i].Hint = out.LastError
		}
	}
	return all
}
