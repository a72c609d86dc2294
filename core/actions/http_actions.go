package actions

import (
	"context"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves the management of actions.
type HTTP struct{ service *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes over service.
func NewHTTP(service *Service) *HTTP { return &HTTP{service} }

// Scopes of personal keys.
const (
	scopeRead  = "action:read"
	scopeWrite = "action:write"
)

const actionsPath = "/api/projects/:project_id/actions"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, actionsPath, scopeRead, h.list)
	g.Manage(fiber.MethodPost, actionsPath, scopeWrite, h.create)
	g.Manage(fiber.MethodGet, actionsPath+"/activity", scopeRead, h.projectActivity)
	g.Manage(fiber.MethodGet, actionsPath+"/:id", scopeRead, h.retrieve)
	g.Manage(fiber.MethodPatch, actionsPath+"/:id", scopeWrite, h.update)
	g.Manage(fiber.MethodPut, actionsPath+"/:id", scopeWrite, h.update)
	g.Manage(fiber.MethodDelete, actionsPath+"/:id", scopeWrite, (*web.Call).MethodNotAllowed)
	g.Manage(fiber.MethodGet, actionsPath+"/:id/activity", scopeRead, h.activity)
}

func (h *HTTP) list(c *web.Call) error {
	csv, err := c.WantsCSV()
	if err != nil {
		return err
	}
	page := c.Page()
	deleted, err := query.Bool(c, "deleted")
	if err != nil {
		return err
	}
	q := Query{Search: strings.Clone(c.Query("search")), Deleted: deleted, Limit: page.Limit, Offset: page.Offset}
	if q.CreatedBy, err = query.ID(c, "created_by_id"); err != nil {
		return err
	}
	for tag := range strings.SplitSeq(c.Query("tags"), ",") {
		if tag = strings.ToLower(strings.TrimSpace(strings.Clone(tag))); tag != "" {
			q.Tags = append(q.Tags, tag)
		}
	}
	list, total, err := h.service.List(c.UserContext(), c.Project.ID, q)
	if err != nil {
		return err
	}
	views, err := h.service.views(c.UserContext(), c.Project, list...)
	switch {
	case err != nil:
		return err
	case csv:
		return actionsCSV(c, views)
	}
	return c.List(page, total, views)
}

func (h *HTTP) create(c *web.Call) error {
	in, err := h.input(c)
	if err != nil {
		return err
	}
	a, err := h.service.Create(c.UserContext(), c.Principal, c.Project, in)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answer(c, a)
}

// input reads the body, after the answer format: a request with an unknown
// format must not write.
func (h *HTTP) input(c *web.Call) (Input, error) {
	if _, err := c.WantsCSV(); err != nil {
		return Input{}, err
	}
	f, err := c.Fields()
	if err != nil {
		return Input{}, err
	}
	return ReadInput(f)
}

func (h *HTTP) retrieve(c *web.Call) error {
	id, err := actionID(c)
	if err != nil {
		return err
	}
	a, err := h.service.Get(c.UserContext(), c.Project.ID, id)
	if err != nil {
		return err
	}
	return h.answer(c, a)
}

func (h *HTTP) update(c *web.Call) error {
	id, err := actionID(c)
	if err != nil {
		return err
	}
	if _, err := h.service.Get(c.UserContext(), c.Project.ID, id); err != nil {
		return err
	}
	in, err := h.input(c)
	if err != nil {
		return err
	}
	a, err := h.service.Update(c.UserContext(), c.Principal, c.Project, id, in)
	if err != nil {
		return err
	}
	return h.answer(c, a)
}

// answer answers with one action.
func (h *HTTP) answer(c *web.Call, a Action) error {
	csv, err := c.WantsCSV()
	if err != nil {
		return err
	}
	views, err := h.service.views(c.UserContext(), c.Project, a)
	switch {
	case err != nil:
		return err
	case csv:
		return actionsCSV(c, views)
	}
	return web.JSON(c.Ctx, views[0])
}

// actionID reads the id in the path; an invalid one is NotFound.
func actionID(c *web.Call) (int64, error) {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, errNotFound
	}
	return id, nil
}

func (h *HTTP) projectActivity(c *web.Call) error { return h.activityOf(c, 0) }

func (h *HTTP) activity(c *web.Call) error {
	id, err := actionID(c)
	if err != nil {
		return err
	}
	return h.activityOf(c, id)
}

func (h *HTTP) activityOf(c *web.Call, id int64) error {
	return activity.Answer(c, func(ctx context.Context, limit, offset int) ([]activity.Entry, int, error) {
		return h.service.Activity(ctx, c.Project.ID, id, limit, offset)
	})
}
