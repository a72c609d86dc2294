package web

import (
	"net/url"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/auth"
)

// Call is a management request that has passed the gate. Like the fiber.Ctx
// in it, it is only good until the handler returns.
//
// UserContext ends after the configured request timeout or when the server
// loses patience while stopping: pass it on to everything that can wait.
type Call struct {
	*fiber.Ctx
	// Principal holds the personal key of the request; never nil.
	Principal *auth.Principal
	// Project is the project of the path, the zero Project when the path has
	// no :project_id.
	Project auth.Project

	gate *Router
}

// Params returns a parameter of the path with its percent escapes undone.
func (c *Call) Params(name string, fallback ...string) string {
	return Param(c.Ctx, name, fallback...)
}

// Param returns a parameter of the path with its percent escapes undone; one
// whose escapes are broken comes back as it is.
func Param(c *fiber.Ctx, name string, fallback ...string) string {
	raw := c.Params(name, fallback...)
	if s, err := url.PathUnescape(raw); err == nil {
		return s
	}
	return raw
}

// CurrentProject is for paths without a :project_id: the project whose key is
// in the query parameter token when there is one and Who may see it (else
// Unauthenticated or NotFound), the current project of Who otherwise.
func (c *Call) CurrentProject() (auth.Project, error) {
	return c.gate.projectNamed(c.Ctx, c.Principal, current)
}

// BaseURL is the address the caller reached the server under, without a slash
// at the end: site_url when it is set, else what the request and trusted
// proxies say.
func (c *Call) BaseURL() string { return c.gate.baseURL(c.Ctx) }

// Fields reads the body of the request; see Decode.
func (c *Call) Fields() (*Fields, error) { return Decode(c.Ctx, c.gate.Limits()) }

// Page reads limit and offset of the query; see PageOf.
func (c *Call) Page() Page { return PageOf(c.Ctx) }

// List answers with the list envelope: count is the size of the whole list,
// results the items of the page p (null becomes []). next and previous are
// absolute and keep every other query parameter.
func (c *Call) List(p Page, count int, results any) error {
	return c.gate.list(c.Ctx, p, count, results)
}

// MethodNotAllowed answers 405 with an empty body: the path is there, and deleting is
// not how things are removed. The Allow header names the other methods.
func (c *Call) MethodNotAllowed() error {
	c.Set(fiber.HeaderAllow, c.gate.allowed(routeOf(c.Ctx), c.Method()))
	return Empty(c.Ctx, fiber.StatusMethodNotAllowed)
}

// Empty answers with a status and no body at all.
func Empty(c *fiber.Ctx, status int) error {
	c.Response().ResetBody()
	c.Response().Header.SetNoDefaultContentType(true)
	c.Response().Header.Del(fiber.HeaderContentType)
	c.Status(status)
	return nil
}
