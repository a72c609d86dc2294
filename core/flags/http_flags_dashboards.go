package flags

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

const dashboardsPath = "/api/projects/:project_id/dashboards"

func (h *HTTP) dashboardRoutes(g *web.Router) {
	g.Manage("GET", dashboardsPath, scopeRead, h.listDashboards)
	g.Manage("GET", dashboardsPath+"/:id", scopeRead, h.retrieveDashboard)
	g.Manage("PATCH", dashboardsPath+"/:id", scopeWrite, h.updateDashboard)
	g.Manage("DELETE", dashboardsPath+"/:id", scopeWrite, h.deleteDashboard)
	g.Manage("POST", flagsPath+"/:id/dashboard", scopeWrite, h.newUsageDashboard)
	g.Manage("POST", flagsPath+"/:id/enrich_usage_dashboard", scopeWrite, h.enrichUsageDashboard)
}

func (h *HTTP) listDashboards(c *web.Call) error {
	page := c.Page()
	list, total, err := h.service.Dashboards(c.UserContext(), c.Project, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	ids := make([]int64, 0, len(list))
	for _, d := range list {
		ids = append(ids, d.CreatedBy)
	}
	users, err := h.service.users(c.UserContext(), ids)
	if err != nil {
		return err
	}
	views := make([]dashboardView, 0, len(list))
	for _, d := range list {
		views = append(views, d.show(users[d.CreatedBy]))
	}
	return c.List(page, total, views)
}

func (h *HTTP) retrieveDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	d, err := h.service.Dashboard(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return h.answerDashboard(c, d)
}

func (h *HTTP) updateDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := DashboardChange{
		Name:        value(body.String("name", web.Max(maxKey))),
		Description: value(body.String("description", web.Blank)),
		Tags:        tags(body),
		Deleted:     value(body.Bool("deleted")),
	}
	if err := body.Err(); err != nil {
		return err
	}
	d, err := h.service.UpdateDashboard(c.UserContext(), c.Project, id, change)
	if err != nil {
		return err
	}
	return h.answerDashboard(c, d)
}

func (h *HTTP) deleteDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	gone := true
	if _, err := h.service.UpdateDashboard(c.UserContext(), c.Project, id, DashboardChange{Deleted: &gone}); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// answerDashboard shows one dashboard with what its tiles count now.
func (h *HTTP) answerDashboard(c *web.Call, d *Dashboard) error {
	users, err := h.service.users(c.UserContext(), []int64{d.CreatedBy})
	if err != nil {
		return err
	}
	v := d.show(users[d.CreatedBy])
	if v.Tiles, err = h.service.tiles(c.UserContext(), c.Project, d); err != nil {
		return err
	}
	return web.JSON(c.Ctx, v)
}

// success is how the two dashboard calls of a flag say that they worked, or
// why not.
type success struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

func (h *HTTP) newUsageDashboard(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	_, err = h.service.NewUsageDashboard(c.UserContext(), c.Principal, c.Project, id)
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
