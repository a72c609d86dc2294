package dashboards

import (
	"context"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves dashboards under /api/projects/:project_id/dashboards.
type HTTP struct {
	service *Service
	audit   *activity.Audit
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over service.
func NewHTTP(service *Service, audit *activity.Audit) *HTTP { return &HTTP{service, audit} }

const basePath = "/api/projects/:project_id/dashboards"

// Scopes of personal keys.
const (
	scopeRead  = "dashboard:read"
	scopeWrite = "dashboard:write"
)

// maxName is the length limit of names.
const maxName = 400

// Routes registers the endpoints.
func (h *HTTP) Routes(r *web.Router) {
	r.Manage("GET", basePath, scopeRead, h.list)
	r.Manage("POST", basePath, scopeWrite, h.create)
	r.Manage("GET", basePath+"/:id", scopeRead, h.retrieve)
	r.Manage("PATCH", basePath+"/:id", scopeWrite, h.update)
	r.Manage("DELETE", basePath+"/:id", scopeWrite, h.delete)
}

func (h *HTTP) list(c *web.Call) error {
	page := c.Page()
	list, total, err := h.service.List(c.UserContext(), c.Project, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	ids := make([]int64, 0, len(list))
	for _, d := range list {
		ids = append(ids, d.CreatedBy)
	}
	users, err := h.service.deps.Users.UsersByID(c.UserContext(), ids)
	if err != nil {
		return err
	}
	views := make([]dashboardView, 0, len(list))
	for _, d := range list {
		views = append(views, viewOf(d, users))
	}
	return c.List(page, total, views)
}

func (h *HTTP) create(c *web.Call) error {
	if err := h.service.MayCreate(c.UserContext(), c.Principal); err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	in := Change{
		Name:        pointer(body.String("name", web.Required, web.Max(maxName))),
		Description: pointer(body.String("description", web.Blank)),
		Tags:        ReadTags(body),
	}
	if err := body.Err(); err != nil {
		return err
	}
	var d *Dashboard
	err = h.audit.Change(c.UserContext(), c.Principal, func(ctx context.Context) (*activity.Event, error) {
		if d, err = h.service.Create(ctx, c.Principal, c.Project, in); err != nil {
			return nil, err
		}
		return &activity.Event{
			Scope: activity.Dashboard, ItemID: activity.ItemID(d.ID), Activity: activity.Created, Name: d.Name, ProjectID: c.Project.ID, After: stateOf(d),
		}, nil
	})
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answer(c, d)
}

func (h *HTTP) retrieve(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	d, err := h.service.Get(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return h.answer(c, d)
}

func (h *HTTP) update(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	if err := h.service.MayEdit(c.UserContext(), c.Principal, c.Project, id); err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := Change{
		Name:        pointer(body.String("name", web.Max(maxName))),
		Description: pointer(body.String("description", web.Blank)),
		Tags:        ReadTags(body),
		Deleted:     pointer(body.Bool("deleted")),
	}
	if err := body.Err(); err != nil {
		return err
	}
	d, err := h.change(c, id, change)
	if err != nil {
		return err
	}
	return h.answer(c, d)
}

func (h *HTTP) delete(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	gone := true
	if _, err := h.change(c, id, Change{Deleted: &gone}); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// dashboardState is the state of a dashboard in the activity log.
type dashboardState struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Deleted     bool     `json:"deleted"`
}

func stateOf(d *Dashboard) dashboardState {
	return dashboardState{d.Name, d.Description, d.Tags, d.Deleted}
}

// change changes a dashboard together with its entry in the activity log.
func (h *HTTP) change(c *web.Call, id int64, change Change) (d *Dashboard, err error) {
	err = h.audit.Change(c.UserContext(), c.Principal, func(ctx context.Context) (*activity.Event, error) {
		before, err := h.service.Get(ctx, c.Project, id)
		if err != nil {
			return nil, err
		}
		was := stateOf(before)
		if d, err = h.service.Update(ctx, c.Principal, c.Project, id, change); err != nil {
			return nil, err
		}
		done := activity.Updated
		if d.Deleted {
			done = activity.Deleted
		}
		return &activity.Event{
			Scope: activity.Dashboard, ItemID: activity.ItemID(id), Activity: done, Name: d.Name, ProjectID: c.Project.ID,
			Before: was, After: stateOf(d),
		}, nil
	})
	return d, err
}

// answer shows one dashboard with what its tiles count now.
func (h *HTTP) answer(c *web.Call, d *Dashboard) error {
	users, err := h.service.deps.Users.UsersByID(c.UserContext(), []int64{d.CreatedBy})
	if err != nil {
		return err
	}
	v := viewOf(d, users)
	if v.Tiles, err = h.service.tileViews(c.UserContext(), c.Project, d); err != nil {
		return err
	}
	return web.JSON(c.Ctx, v)
}

// idOf reads the id of a dashboard from the path. Other texts are NotFound.
func idOf(c *web.Call) (int64, error) {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, errNotFound
	}
	return id, nil
}

// pointer returns the value of a field, nil if it was not sent or is null.
func pointer[T any](o web.Opt[T]) *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}
