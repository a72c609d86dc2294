package propertyvalues

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// maxParameter is the longest key, event and part of a value, in bytes.
const maxParameter = 1_000

// HTTP serves values to users of their project.
type HTTP struct{ values *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s.
func NewHTTP(s *Service) *HTTP { return &HTTP{s} }

// NewRoutes returns the routes over the persons and events of d.
func NewRoutes(d *db.DB, p *persons.Service, e *events.Service) web.Routes {
	return NewHTTP(New(d, p, e))
}

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/persons/values", "person:read", h.ofPersons)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/events/values", "event:read", h.ofEvents)
}

func (h *HTTP) ofPersons(c *web.Call) error {
	q, err := parameters(c, "key", "value")
	if err != nil {
		return err
	}
	values, err := h.values.OfPersons(c.UserContext(), c.Project.ID, q[0], q[1])
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, values)
}

func (h *HTTP) ofEvents(c *web.Call) error {
	q, err := parameters(c, "key", "value", "event_name")
	if err != nil {
		return err
	}
	values, err := h.values.OfEvents(c.UserContext(), c.Project.ID, q[2], q[0], q[1])
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, values)
}

// parameters reads texts of the query; key is required.
func parameters(c *web.Call, names ...string) ([]string, error) {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.Clone(c.Query(name))
		switch {
		case name == "key" && out[i] == "":
			return nil, fault.Field(name, "required", "This field is required.")
		case len(out[i]) > maxParameter:
			return nil, fault.Fieldf(name, "max_length", "Ensure this field has no more than %d bytes.", maxParameter)
		}
	}
	return out, nil
}
