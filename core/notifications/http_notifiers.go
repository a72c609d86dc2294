package notifications

import (
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/web"
)

// notifierView is a notifier that actions can name. It has nothing of its config,
// which only operators may read.
type notifierView struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	// Default is true if actions without destinations post to it.
	Default bool `json:"default"`
}

// notifiers lists the notifiers in the config of the server, by name.
func (h *HTTP) notifiers(c *web.Call) error {
	standard := h.service.destinations(&actions.Action{})
	views := []notifierView{}
	for _, n := range h.service.deps.Notifiers.Notifiers() {
		name := n.Name()
		views = append(views, notifierView{
			Name: name, Available: n.Available(),
			Default: slices.ContainsFunc(standard, func(d actions.Destination) bool { return d.Notifier == name }),
		})
	}
	slices.SortFunc(views, func(a, b notifierView) int { return strings.Compare(a.Name, b.Name) })
	return web.JSON(c.Ctx, map[string]any{"results": views})
}
