package flags

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the management of flags, role access and dashboards.
type HTTP struct {
	service *Service
	decider *decide.Decider
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over service. decider decides flags for a
// distinct id.
func NewHTTP(service *Service, decider *decide.Decider) *HTTP {
	return &HTTP{service: service, decider: decider}
}

// Scopes of personal keys.
const (
	scopeRead  = "feature_flag:read"
	scopeWrite = "feature_flag:write"
)

const flagsPath = "/api/projects/:project_id/feature_flags"

// Routes registers the management endpoints.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage("GET", flagsPath, scopeRead, h.list)
	g.Manage("POST", flagsPath, scopeWrite, h.create)
	g.Manage("GET", flagsPath+"/activity", scopeRead, h.projectActivity)
	g.Manage("GET", flagsPath+"/:id/remote_config", scopeRead, h.remoteConfig)
	h.decidedRoutes(g)
	g.Manage("GET", flagsPath+"/:id", scopeRead, h.retrieve)
	g.Manage("PATCH", flagsPath+"/:id", scopeWrite, h.update(false))
	g.Manage("PUT", flagsPath+"/:id", scopeWrite, h.update(true))
	g.Manage("DELETE", flagsPath+"/:id", scopeWrite, (*web.Call).MethodNotAllowed)
	g.Manage("GET", flagsPath+"/:id/activity", scopeRead, h.activity)
	g.Manage("POST", flagsPath+"/:id/rollback", scopeWrite, h.rollback)
	h.accessRoutes(g)
	h.dashboardRoutes(g)
}

func (h *HTTP) list(c *web.Call) error {
	page := c.Page()
	q := listQuery(c)
	q.Limit, q.Offset = page.Limit, page.Offset
	flags, total, err := h.service.List(c.UserContext(), c.Project, q)
	if err != nil {
		return err
	}
	views, err := h.service.show(c.UserContext(), c.Principal, flags...)
	if err != nil {
		return err
	}
	return c.List(page, total, views)
}

// listQuery reads the filters of a list. What cannot be read does not filter.
func listQuery(c *web.Call) Query {
	q := Query{
		Search: strings.Clone(c.Query("search")), Type: strings.Clone(c.Query("type")), Order: strings.Clone(c.Query("order")),
		Tags: texts(c.Query("tags")), ExcludedKeys: texts(c.Query("excluded_properties")),
	}
	switch active := c.Query("active"); {
	case active == "STALE":
		q.Stale = true
	case strings.EqualFold(active, "true"), strings.EqualFold(active, "false"):
		on := strings.EqualFold(active, "true")
		q.Active = &on
	}
	q.CreatedBy, _ = strconv.ParseInt(c.Query("created_by_id"), 10, 64)
	for i, tag := range q.Tags {
		q.Tags[i] = strings.ToLower(strings.TrimSpace(tag))
	}
	return q
}

// texts reads a JSON list of texts out of a query parameter.
func texts(parameter string) []string {
	var list []string
	if json.Unmarshal([]byte(parameter), &list) != nil {
		return nil
	}
	return list
}

func (h *HTTP) create(c *web.Call) error {
	in, err := h.input(c, true)
	if err != nil {
		return err
	}
	f, err := h.service.Create(c.UserContext(), c.Principal, c.Project, in)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answer(c, f)
}

func (h *HTTP) input(c *web.Call, full bool) (Input, error) {
	body, err := c.Fields()
	if err != nil {
		return Input{}, err
	}
	return ReadInput(body, full)
}

func (h *HTTP) retrieve(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	f, err := h.service.Get(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return h.answer(c, f)
}

func (h *HTTP) update(full bool) func(c *web.Call) error {
	return func(c *web.Call) error {
		id, err := idOf(c, "id")
		if err != nil {
			return err
		}
		if err := h.service.MayEdit(c.UserContext(), c.Principal, c.Project, id); err != nil {
			return err
		}
		in, err := h.input(c, full)
		if err != nil {
			return err
		}
		f, err := h.service.Update(c.UserContext(), c.Principal, c.Project, id, in)
		if err != nil {
			return err
		}
		return h.answer(c, f)
	}
}

func (h *HTTP) rollback(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	version := body.Int("version", web.Required, web.Min(1))
	if err := body.Err(); err != nil {
		return err
	}
	f, err := h.service.Rollback(c.UserContext(), c.Principal, c.Project, id, version.Value)
	if err != nil {
		return err
	}
	return h.answer(c, f)
}

// answer shows one flag.
func (h *HTTP) answer(c *web.Call, f *Flag) error {
	views, err := h.service.show(c.UserContext(), c.Principal, f)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

// idOf reads an id from the path. Other texts are NotFound.
func idOf(c *web.Call, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return id, nil
}

// remoteConfig answers with the payload of a flag, by its key or id: a JSON
// text as a JSON string, null when there is none.
func (h *HTTP) remoteConfig(c *web.Call) error {
	payload, err := h.service.RemoteConfig(c.UserContext(), c.Project, c.Params("id"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, payload)
}
