package app

import (
	"context"

	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/web"
)

// sinksHTTP pauses the delivery to a sink, and goes on with it.
type sinksHTTP struct{ deliver *ingestion.Deliver }

var _ web.Routes = (*sinksHTTP)(nil)

// Routes registers what can be done with the delivery to a sink.
func (h *sinksHTTP) Routes(g *web.Gate) {
	g.Manage("POST", "/api/plugins/:name/pause", "plugin:write", func(c *web.Call) error {
		return h.do(c, func(ctx context.Context, sink string) error {
			return h.deliver.Pause(ctx, sink, "asked by "+c.Who.User.Email)
		})
	})
	g.Manage("POST", "/api/plugins/:name/resume", "plugin:write", func(c *web.Call) error {
		return h.do(c, h.deliver.Resume)
	})
}

// do does something with a sink and answers with the state of its delivery.
func (h *sinksHTTP) do(c *web.Call, what func(ctx context.Context, sink string) error) error {
	name := c.Params("name")
	if err := what(c.UserContext(), name); err != nil {
		return err
	}
	all, err := h.deliver.Status(c.UserContext())
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Sink == name {
			return web.JSON(c.Ctx, all[i])
		}
	}
	return ingestion.ErrNoSink
}
