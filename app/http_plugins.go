package app

import (
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/web"
)

// pluginsHTTP shows operators every plugin instance: what the host knows of
// the process and what delivery knows of the work.
type pluginsHTTP struct {
	host    *host.Host
	deliver *ingestion.Deliver
}

// instance is one line of the answer. Delivery is null for a plugin that takes
// no events.
type instance struct {
	host.InstanceStatus
	Delivery *ingestion.SinkStatus `json:"delivery"`
}

// Routes registers GET /api/plugins.
func (h *pluginsHTTP) Routes(g *web.Gate) {
	g.Manage("GET", "/api/plugins", "plugin:read", h.list)
}

func (h *pluginsHTTP) list(c *web.Call) error {
	deliveries, err := h.deliver.Status(c.UserContext())
	if err != nil {
		return err
	}
	bySink := make(map[string]*ingestion.SinkStatus, len(deliveries))
	for i := range deliveries {
		bySink[deliveries[i].Sink] = &deliveries[i]
	}
	results := []instance{}
	for _, status := range h.host.Status() {
		results = append(results, instance{status, bySink[status.Name]})
	}
	return web.JSON(c.Ctx, map[string]any{"results": results})
}
