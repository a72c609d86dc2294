package web

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/core/web/browser"
	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/ignored"
)

// Call is an authenticated management request. Like its fiber.Ctx, it is valid
// until the handler returns.
//
// UserContext ends after the request timeout, or when a stop of the server runs
// out of time: pass it to everything that can wait.
type Call struct {
	*fiber.Ctx
	// Principal is the holder of the personal key; never nil.
	Principal *auth.Principal
	// Project is the project of the path, zero for a path without :project_id.
	Project auth.Project

	router *Router
	query  ignored.Query
	fields *Fields // of the body, after Fields
}

// Recheck returns a function that authenticates the caller again, for an answer without an
// end. It fails when a new request would, with the same project and scope.
func (c *Call) Recheck(scope string) func(context.Context) error {
	a, id, find := c.router.auth, itoa(c.Project.ID), c.router.auth.auth.PrincipalByKey
	key, place := credential.Personal(c.Request())
	if key = strings.Clone(key); place == "" {
		key, find = browser.Session(c.Request(), c.router.IsSecure(c.Ctx)), a.sessions.PrincipalBySession
	}
	return func(ctx context.Context) error {
		p, err := find(ctx, key)
		if err == nil {
			_, err = a.auth.ProjectFor(ctx, p, id)
		}
		return cmp.Or(err, p.RequireScope(scope))
	}
}

// Params returns a parameter of the path, unescaped.
func (c *Call) Params(name string, fallback ...string) string {
	return Param(c.Ctx, name, fallback...)
}

// Param returns a parameter of the path, unescaped; one with invalid escapes is
// returned unchanged.
func Param(c *fiber.Ctx, name string, fallback ...string) string {
	raw := c.Params(name, fallback...)
	if s, err := url.PathUnescape(raw); err == nil {
		return s
	}
	return raw
}

// CurrentProject returns the project of a request to a path without
// :project_id: that of the project key in the query parameter token, or else in
// the header X-PostHog-Project-Api-Key, if Principal may see it (else
// Unauthenticated or Forbidden), or the current project of Principal.
func (c *Call) CurrentProject() (auth.Project, error) {
	return c.router.auth.projectNamed(c.Ctx, c.Principal, current)
}

// BaseURL returns the URL by which the caller reached the server, without a
// slash at the end: site_url if set, else derived from the request and trusted
// proxies.
func (c *Call) BaseURL() string { return c.router.BaseURL(c.Ctx) }

// ConsoleURL is Router.ConsoleURL.
func (c *Call) ConsoleURL() string { return c.router.ConsoleURL(c.Ctx) }

// Fields reads the body of the request; see Decode.
func (c *Call) Fields() (_ *Fields, err error) {
	c.fields, err = Decode(c.Ctx, c.router.Limits())
	return c.fields, err
}

// Page reads limit and offset of the query; see PageOf.
func (c *Call) Page() Page {
	c.query.Read("limit", "offset")
	return PageOf(c.Ctx)
}

// List answers with the list envelope: count is the size of the whole list,
// results the items of the page p (null becomes []). The links next and
// previous are absolute and keep every other query parameter.
func (c *Call) List(p Page, count int, results any) error {
	return c.router.list(c.Ctx, p, count, results)
}

// MethodNotAllowed answers 405 with an empty body, for a path whose resources
// cannot be deleted. The Allow header lists the other methods.
func (c *Call) MethodNotAllowed() error {
	rt := routeOf(c.Ctx)
	c.Set(fiber.HeaderAllow, rt.port.table.allowed(rt, c.Method()))
	return Empty(c.Ctx, fiber.StatusMethodNotAllowed)
}

// Empty answers with a status and no body.
func Empty(c *fiber.Ctx, status int) error {
	c.Response().ResetBody()
	c.Response().Header.SetNoDefaultContentType(true)
	c.Response().Header.Del(fiber.HeaderContentType)
	c.Status(status)
	return nil
}

type originKey struct{}

// Origin tells where a management request came from.
type Origin struct {
	Client    string // the address of the client
	UserAgent string // at most maxUserAgent bytes of it
	RequestID string // as in the log
}

// maxUserAgent bounds the User-Agent of an Origin.
const maxUserAgent = 200

// origin is an Origin with the details of its request.
type origin struct {
	Origin
	logged atomic.Bool // see MarkLogged
}

// MarkLogged notes that the change of the request with this context is in the activity
// log, or that the request changes nothing. Without a request it has no effect.
func MarkLogged(ctx context.Context) {
	if o, ok := ctx.Value(originKey{}).(*origin); ok {
		o.logged.Store(true)
	}
}

// OriginOf returns the origin of a management request from the context of the request,
// zero without one.
func OriginOf(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(*origin); ok {
		return o.Origin
	}
	return Origin{}
}

// userAgent returns the User-Agent of the request, shortened.
func userAgent(c *fiber.Ctx) string {
	return strings.Clone(text.Truncate(strings.ToValidUTF8(c.Get(fiber.HeaderUserAgent), "?"), maxUserAgent))
}

// WithOrigin adds the origin of the request to ctx.
func (r *Router) WithOrigin(ctx context.Context, c *fiber.Ctx) context.Context {
	return context.WithValue(ctx, originKey{}, &origin{Origin: Origin{r.IP(c).String(), userAgent(c), RequestID(c)}})
}

// Unlogged is a successful management request that may have changed something and made
// no entry in the activity log.
type Unlogged struct {
	Method, Pattern string
	ItemID          string // the last parameter of the path but the project and the organization
	ProjectID       int64
	Principal       *auth.Principal
}

// OnUnlogged sets f, which logs such requests, before Start. f must be safe for
// concurrent use; its error becomes that of the request.
func (s *Server) OnUnlogged(f func(ctx context.Context, u Unlogged) error) { s.router.onUnlogged = f }

// checkLogged calls the function of OnUnlogged for a request without an entry.
func (c *Call) checkLogged(rt *route) error {
	f := c.router.onUnlogged
	if f == nil || rt.method == fiber.MethodGet || rt.method == fiber.MethodOptions || c.Response().StatusCode() >= fiber.StatusBadRequest {
		return nil
	}
	ctx := c.UserContext()
	if o, ok := ctx.Value(originKey{}).(*origin); ok && o.logged.Load() {
		return nil
	}
	u := Unlogged{Method: rt.method, Pattern: rt.pattern, ProjectID: c.Project.ID, Principal: c.Principal}
	for segment := range strings.SplitSeq(rt.pattern, "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok && name != "project_id" && name != "organization_id" {
			u.ItemID = strings.Clone(c.Params(name))
		}
	}
	return f(ctx, u)
}
