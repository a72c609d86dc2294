package app

import (
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/web"
)

// pluginsHTTP shows operators every plugin instance: what the host knows of
// the process and what delivery knows of the work.
type pluginsHTTP struct {
	host *host.Host
}

// Routes registers GET /api/plugins.
func (h *pluginsHTTP) Routes(g *web.Gate) {
	g.Manage("GET", "/api/plugins", "plugin:read", h.list)
}

func (h *pluginsHTTP) list(c *web.Call) error {
	return web.JSON(c.Ctx, map[string]any{"results": h.host.Status()})
}
