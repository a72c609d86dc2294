package flags

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves the management of flags. It is composed by topic.
type HTTP struct {
	flags      flagsHTTP
	evaluation evaluationHTTP
	access     accessHTTP
	usage      usageHTTP
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over service. decider evaluates flags for a
// distinct id.
func NewHTTP(service *Service, decider *decide.Decider) *HTTP {
	return &HTTP{flagsHTTP{service}, evaluationHTTP{service, decider}, accessHTTP{service}, usageHTTP{service}}
}

// Scopes of personal keys.
const (
	scopeRead  = "feature_flag:read"
	scopeWrite = "feature_flag:write"
)

const flagsPath = "/api/projects/:project_id/feature_flags"

// Routes registers the management endpoints.
func (h *HTTP) Routes(g *web.Router) {
	h.flags.routes(g)
	h.evaluation.routes(g)
	h.access.routes(g)
	h.usage.routes(g)
}

// flagsHTTP serves flags, their versions and their activity.
type flagsHTTP struct{ service *Service }

func (h flagsHTTP) routes(g *web.Router) {
	g.Manage("GET", flagsPath, scopeRead, h.list)
	g.Manage("POST", flagsPath, scopeWrite, h.create)
	g.Manage("GET", flagsPath+"/activity", scopeRead, h.projectActivity)
	g.Manage("GET", flagsPath+"/tags", scopeRead, h.tags)
	g.ManageClient("GET", flagsPath+"/:id/remote_config", scopeRead, h.remoteConfig)
	g.Manage("GET", flagsPath+"/:id/status", scopeRead, h.status)
	g.Manage("GET", flagsPath+"/:id", scopeRead, h.retrieve)
	g.Manage("PATCH", flagsPath+"/:id", scopeWrite, h.update(false))
	g.Manage("PUT", flagsPath+"/:id", scopeWrite, h.update(true))
	g.Manage("DELETE", flagsPath+"/:id", scopeWrite, (*web.Call).MethodNotAllowed)
	g.Manage("GET", flagsPath+"/:id/activity", scopeRead, h.activity)
	g.Manage("POST", flagsPath+"/:id/rollback", scopeWrite, h.rollback)
}

func (h flagsHTTP) list(c *web.Call) error {
	page := c.Page()
	q, err := ReadQuery(c)
	if err != nil {
		return err
	}
	if q.Deleted, err = query.Bool(c, "deleted"); err != nil {
		return err
	}
	q.Limit, q.Offset = page.Limit, page.Offset
	flags, total, err := h.service.List(c.UserContext(), c.Project, q)
	if err != nil {
		return err
	}
	views, err := h.service.Show(c.UserContext(), c.Principal, flags...)
	if err != nil {
		return err
	}
	return c.List(page, total, views)
}

// tags answers with the tags of all flags of the project, for a filter of its list.
func (h flagsHTTP) tags(c *web.Call) error {
	tags, err := h.service.Tags(c.UserContext(), c.Project)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, map[string][]string{"results": tags})
}

// ReadQuery reads the filters of a list. Lists that are not JSON and unknown types and orders
// are ignored; another unreadable filter is Invalid, because callers delete what they select.
func ReadQuery(c *web.Call) (q Query, err error) {
	q = Query{
		Search: strings.Clone(c.Query("search")), Type: strings.Clone(c.Query("type")), Order: strings.Clone(c.Query("order")),
		Tags: stringList(c.Query("tags")), ExcludedKeys: stringList(c.Query("excluded_properties")),
	}
	if q.Stale = c.Query("active") == "STALE"; !q.Stale {
		if q.Active, err = query.OptionalBool(c, "active"); err != nil {
			return q, fault.Field("active", "invalid_input", "Must be true, false or STALE.")
		}
	}
	for i, tag := range q.Tags {
		q.Tags[i] = strings.ToLower(strings.TrimSpace(tag))
	}
	q.CreatedBy, err = query.ID(c, "created_by_id")
	return q, err
}

// stringList reads a JSON list of strings from a query parameter, nil if it is
// none.
func stringList(parameter string) []string {
	var list []string
	if json.Unmarshal([]byte(parameter), &list) != nil {
		return nil
	}
	return list
}

func (h flagsHTTP) create(c *web.Call) error {
	if err := h.service.MayCreate(c.UserContext(), c.Principal); err != nil {
		return err
	}
	in, err := h.input(c, true)
	if err != nil {
		return err
	}
	f, err := h.service.Create(c.UserContext(), c.Principal, c.Project, in)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answerFlag(c, f)
}

// input reads the body of a write. full requires the required fields.
func (h flagsHTTP) input(c *web.Call, full bool) (Input, error) {
	body, err := c.Fields()
	if err != nil {
		return Input{}, err
	}
	return ReadInput(body, full)
}

func (h flagsHTTP) retrieve(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	f, err := h.service.Get(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return h.answerFlag(c, f)
}

func (h flagsHTTP) update(full bool) func(c *web.Call) error {
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
		return h.answerFlag(c, f)
	}
}

func (h flagsHTTP) rollback(c *web.Call) error {
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
	return h.answerFlag(c, f)
}

// answerFlag answers with one flag.
func (h flagsHTTP) answerFlag(c *web.Call, f *Flag) error {
	views, err := h.service.Show(c.UserContext(), c.Principal, f)
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

// remoteConfig answers with the payload of a flag, by its key or id: its JSON
// text as a JSON string, or null.
func (h flagsHTTP) remoteConfig(c *web.Call) error {
	payload, err := h.service.RemoteConfig(c.UserContext(), c.Principal, c.Project, c.Params("id"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, payload)
}

// status answers with the state of a flag and its reason.
func (h flagsHTTP) status(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	f, status, reason, err := h.service.Status(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, struct {
		Status     Status   `json:"status"`
		Reason     string   `json:"reason"`
		LastCalled web.Time `json:"last_called_at"`
	}{status, reason, web.Time(f.LastCalled)})
}
