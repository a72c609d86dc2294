package cohorts

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves cohorts under /api/projects/:project_id/cohorts.
type HTTP struct {
	service *Service
	people  PersonViews
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over service.
func NewHTTP(service *Service, people PersonViews) *HTTP { return &HTTP{service, people} }

const basePath = "/api/projects/:project_id/cohorts"

// Scopes of personal keys. Those of flags include them.
const (
	scopeRead  = "cohort:read"
	scopeWrite = "cohort:write"
)

// Routes registers the endpoints.
func (h *HTTP) Routes(r *web.Router) {
	r.Manage("GET", basePath, scopeRead, h.list)
	r.Manage("POST", basePath, scopeWrite, h.create)
	r.Manage("GET", basePath+"/:id", scopeRead, h.retrieve)
	r.Manage("GET", basePath+"/:id/persons", scopeRead, h.persons)
	r.Manage("PATCH", basePath+"/:id", scopeWrite, h.update(false))
	r.Manage("PUT", basePath+"/:id", scopeWrite, h.update(true))
	r.Manage("DELETE", basePath+"/:id", scopeWrite, (*web.Call).MethodNotAllowed)
}

func (h *HTTP) list(c *web.Call) error {
	page := c.Page()
	list, total, err := h.service.List(c.UserContext(), c.Project, listQuery(c), page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views, err := h.service.Show(c.UserContext(), list...)
	if err != nil {
		return err
	}
	return c.List(page, total, views)
}

// listQuery reads the filters of a list. Unreadable ones select nothing less.
func listQuery(c *web.Call) Query {
	q := Query{Search: strings.Clone(c.Query("search"))}
	switch c.Query("type") {
	case "static":
		q.Static = new(bool)
		*q.Static = true
	case "dynamic":
		q.Static = new(bool)
	}
	q.CreatedBy, _ = strconv.ParseInt(c.Query("created_by_id", c.Query("created_by")), 10, 64)
	return q
}

func (h *HTTP) create(c *web.Call) error {
	if err := h.service.MayEdit(c.UserContext(), c.Principal); err != nil {
		return err
	}
	in, err := readInput(c, true)
	if err != nil {
		return err
	}
	made, err := h.service.Create(c.UserContext(), c.Principal, c.Project, in)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answer(c, made)
}

func (h *HTTP) retrieve(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	found, err := h.service.GetCounted(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return h.answer(c, found)
}

func (h *HTTP) update(full bool) func(c *web.Call) error {
	return func(c *web.Call) error {
		id, err := idOf(c)
		if err != nil {
			return err
		}
		if _, err := h.service.Get(c.UserContext(), c.Project, id); err != nil {
			return err
		}
		if err := h.service.MayEdit(c.UserContext(), c.Principal); err != nil {
			return err
		}
		in, err := readInput(c, full)
		if err != nil {
			return err
		}
		changed, err := h.service.Update(c.UserContext(), c.Principal, c.Project, id, in)
		if err != nil {
			return err
		}
		return h.answer(c, changed)
	}
}

// readInput reads the writable fields of a cohort. The members of a static one are
// a list of distinct ids, or a CSV file in the field csv of a form.
func readInput(c *web.Call, full bool) (Input, error) {
	body, err := c.Fields()
	if err != nil {
		return Input{}, err
	}
	name := []web.Rule{web.Max(maxChars)}
	if full {
		name = append(name, web.Required)
	}
	in := Input{
		Name:        pointer(body.String("name", name...)),
		Description: pointer(body.String("description", web.Blank, web.Nullable)),
		Filters:     body.Object("filters").Value,
		Static:      pointer(body.Bool("is_static")),
		Deleted:     pointer(body.Bool("deleted")),
		Add:         distinctIDs(body, "distinct_ids"),
		Remove:      distinctIDs(body, "remove_distinct_ids"),
	}
	if err := body.Err(); err != nil {
		return in, err
	}
	listed, err := readUpload(c, body)
	in.Add = append(in.Add, listed...)
	return in, err
}

func (h *HTTP) answer(c *web.Call, cohort *Cohort) error {
	views, err := h.service.Show(c.UserContext(), cohort)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

// Show returns the JSON form of cohorts.
func (s *Service) Show(ctx context.Context, list ...*Cohort) ([]View, error) {
	ids := make([]int64, 0, len(list))
	for _, cohort := range list {
		ids = append(ids, cohort.CreatedBy)
	}
	users, err := s.deps.Users.UsersByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	views := make([]View, 0, len(list))
	for _, cohort := range list {
		views = append(views, viewOf(cohort, users))
	}
	return views, nil
}

// View is the JSON form of a cohort.
type View struct {
	ID                int64           `json:"id"`
	Name              string          `json:"name"`
	Description       string          `json:"description"`
	Groups            []struct{}      `json:"groups"`
	Deleted           bool            `json:"deleted"`
	Filters           json.RawMessage `json:"filters"`
	IsCalculating     bool            `json:"is_calculating"`
	CreatedBy         *auth.User      `json:"created_by"`
	CreatedAt         web.Time        `json:"created_at"`
	LastCalculation   web.Time        `json:"last_calculation"`
	ErrorsCalculating int             `json:"errors_calculating"`
	Count             *int64          `json:"count"`
	IsStatic          bool            `json:"is_static"`
	Version           int64           `json:"version"`
	UpdatedAt         web.Time        `json:"updated_at"`
}

func viewOf(c *Cohort, users map[int64]auth.User) View {
	v := View{
		ID: c.ID, Name: c.Name, Description: c.Description, Groups: []struct{}{}, Deleted: c.Deleted, Filters: c.Filters,
		CreatedAt: web.Time(c.CreatedAt), LastCalculation: web.Time(c.CalculatedAt), Count: c.People,
		IsStatic: c.Static, Version: c.Version, UpdatedAt: web.Time(c.UpdatedAt),
	}
	if u, ok := users[c.CreatedBy]; ok {
		v.CreatedBy = &u
	}
	return v
}

// idOf reads the id of a cohort from the path. Other texts are NotFound.
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
