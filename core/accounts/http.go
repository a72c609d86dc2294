package accounts

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves accounts. It is large because it has one handler for each of the
// contract's endpoints; they share nothing but the service.
type HTTP struct {
	auth  *auth.Service
	flags Flags
	audit *activity.Audit
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s. flags may be nil: roles then show no flags; audit
// may be nil: changes then have no entries in the activity log.
func NewHTTP(s *auth.Service, flags Flags, audit *activity.Audit) *HTTP {
	return &HTTP{auth: s, flags: flags, audit: audit}
}

const (
	projectsPath      = "/api/projects"
	projectPath       = projectsPath + "/:project_id"
	organizationsPath = "/api/organizations"
	organizationPath  = organizationsPath + "/:organization_id"
	personalKeysPath  = "/api/personal_api_keys"
)

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/users/@me", "user:read", h.me)
	g.Manage(fiber.MethodPatch, "/api/users/@me", "user:write", h.changeMe)
	h.personalKeyRoutes(g)
	h.projectRoutes(g)
	h.secretKeyRoutes(g)
	h.organizationRoutes(g)
	h.memberRoutes(g)
	h.roleRoutes(g)
	h.accessRoutes(g)
}

type handler = func(c *web.Call) error

// ownOrganization accepts only the organization of the key, by id or as @current.
// A key that is restricted to some projects may only read it.
func ownOrganization(next handler) handler {
	return func(c *web.Call) error {
		id := c.Params("organization_id")
		if id != auth.Current && !strings.EqualFold(id, c.Principal.OrganizationID) {
			return errNotFound
		}
		if c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead && c.Principal.IsRestricted() {
			return fault.New(fault.Forbidden, "permission_denied", "An API key that is restricted to some projects cannot change the organization.")
		}
		return next(c)
	}
}

// adminsOnly accepts only admins and owners.
func adminsOnly(next handler) handler {
	return func(c *web.Call) error {
		if err := requireAdmin(c.Principal); err != nil {
			return err
		}
		return next(c)
	}
}

// idOf reads a number of the path; other values are not found.
func idOf(c *web.Call, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, errNotFound
	}
	return id, nil
}

// answer answers with the JSON form of an object.
func answer[T, V any](c *web.Call, show func(T) V, one T, err error) error {
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, show(one))
}

// created answers 201 with a created object.
func created(c *web.Call, v any) error {
	c.Status(fiber.StatusCreated)
	return web.JSON(c.Ctx, v)
}

// noContent answers 204 unless there is an error.
func noContent(c *web.Call, err error) error {
	if err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// list answers with one page of a list.
func list[T, V any](c *web.Call, show func(T) V, all []T, err error) error {
	if err != nil {
		return err
	}
	page := c.Page()
	views := []V{}
	for _, one := range query.Cut(all, page.Limit, page.Offset) {
		views = append(views, show(one))
	}
	return c.List(page, len(all), views)
}

// given returns the value of a field, nil if it was not sent.
func given[T any](o web.Opt[T]) *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// number is given for a field of small numbers.
func number(o web.Opt[int64]) *int {
	if !o.Set {
		return nil
	}
	n := int(o.Value)
	return &n
}
