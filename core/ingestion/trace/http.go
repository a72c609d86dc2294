package trace

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves traces.
type HTTP struct{ tracer *Tracer }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handler.
func NewHTTP(t *Tracer) *HTTP { return &HTTP{t} }

// Routes registers the path.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/events/:uuid/trace", "event:read", h.trace)
}

func (h *HTTP) trace(c *web.Call) error {
	t, err := h.tracer.Trace(c.UserContext(), c.Project.ID, c.Params("uuid"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, t)
}
