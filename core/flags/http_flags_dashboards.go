package flags

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

func (h *HTTP) dashboardRoutes(r *web.Router) {
	r.Manage("POST", flagsPath+"/:id/dashboard", scopeWrite, h.createUsageDashboard)
	r.Manage("POST", flagsPath+"/:id/enrich_usage_dashboard", scopeWrite, h.enrichUsageDashboard)
}

// success is the answer of the two dashboard endpoints of a flag.
type success struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

func (h *HTTP) createUsageDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	_, err = h.service.CreateUsageDashboard(c.UserContext(), c.Principal, c.Project, id)
	return answerSuccess(c, err)
}

func (h *HTTP) enrichUsageDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	return answerSuccess(c, h.service.EnrichUsageDashboard(c.UserContext(), c.Principal, c.Project, id))
}

func answerSuccess(c *web.Call, err error) error {
	switch {
	case err == nil:
		return web.JSON(c.Ctx, success{Success: true})
	case !fault.Is(err, fault.Invalid):
		return err
	}
	c.Status(fiber.StatusBadRequest)
	return web.JSON(c.Ctx, success{Error: fault.From(err).Detail})
}
