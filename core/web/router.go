package web

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web/browser"
	"github.com/guidonhq/guidon/core/web/budget"
	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/envelope"
	"github.com/guidonhq/guidon/core/web/health"
	"github.com/guidonhq/guidon/core/web/inprocess"
	"github.com/guidonhq/guidon/core/web/metrics"
	"github.com/guidonhq/guidon/core/web/request"
)

// Router registers handlers, and offers handlers what concerns their request.
// Registration is for one goroutine and before Server.Start; the other methods
// may be called concurrently.
type Router struct {
	cfg       Config
	log       *zap.Logger
	auth      *authenticator
	metrics   *metrics.Metrics
	readiness *health.Readiness
	budget    *budget.Budget    // of all requests
	mapError  func(error) error // nil: errors stay as they are
	parts     Parts
	base      context.Context // cancelled when a stop runs out of time

	public  *port
	admin   *port // registered routes are not served without http.admin_address
	console *port // the routes of public, nil without http.console_address
	live    atomic.Pointer[liveState]

	onUnlogged func(ctx context.Context, u Unlogged) error // nil: nothing logs them
	tracing    *tracing.Tracing                            // nil: off
}

// Public registers h for a path that client libraries call: any origin may call
// it, preflights are answered, and errors have the public format {type, code,
// detail} with attr only if there is one. The path works with and without a
// slash at the end. The request is not authenticated: h does that with Body,
// Token and ProjectOf, or with Authenticate.
func (r *Router) Public(method, path string, h func(c *fiber.Ctx) error) {
	r.public.add(&route{method: method, pattern: path, public: true, run: h})
}

// PublicUpTo is Public for requests with a body of at most bytes bytes, as
// received; a larger one is TooLarge.
func (r *Router) PublicUpTo(bytes int, method, path string, h func(c *fiber.Ctx) error) {
	r.public.add(&route{method: method, pattern: path, public: true, body: bytes, run: h})
}

// Manage registers h for a management path. Before h runs, the request is
// authenticated by a personal key (else 401) that has scope (else 403; an empty
// scope needs no more than a key), and if the path has a :project_id,
// Call.Project is that project (else 404). Errors have the management format
// with four members. GET also answers HEAD.
func (r *Router) Manage(method, path, scope string, h func(c *Call) error) {
	r.addManaged(r.public, method, path, scope, h)
}

// ManageClient is Manage for a path that server-side client libraries call: it also
// accepts secret keys of the project. Call.Principal then has no user.
func (r *Router) ManageClient(method, path, scope string, h func(c *Call) error) {
	r.addManaged(r.public, method, path, scope, h).secretKeys = true
}

// ManageFromMemory is ManageClient for a path that reads only memory: it also
// serves keys that were not checked with the database while that is away.
func (r *Router) ManageFromMemory(method, path, scope string, h func(c *Call) error) {
	rt := r.addManaged(r.public, method, path, scope, h)
	rt.fromMemory, rt.secretKeys = true, true
}

// Admin is Manage for a path of the admin address: administration of the server
// itself, which clients on the public address cannot reach.
func (r *Router) Admin(method, path, scope string, h func(c *Call) error) {
	r.addManaged(r.admin, method, path, scope, h)
}

func (r *Router) addManaged(p *port, method, path, scope string, h func(c *Call) error) *route {
	rt := &route{method: method, pattern: path, scope: scope}
	rt.run = func(c *fiber.Ctx) error { return r.serveManaged(c, rt, h) }
	p.add(rt)
	return rt
}

// Anonymous registers h for a management path that is called without a key, by pages of
// this server and by programs. A request that is not GET must have a JSON body; one of a
// page of another origin is refused.
func (r *Router) Anonymous(method, path string, h func(c *fiber.Ctx) error) {
	r.public.add(&route{method: method, pattern: path, run: func(c *fiber.Ctx) error { return r.serveAnonymous(c, h) }})
}

func (r *Router) serveAnonymous(c *fiber.Ctx, h func(c *fiber.Ctx) error) error {
	r.metrics.BeginManaging()
	defer r.metrics.EndManaging()
	ctx, cancel := context.WithTimeout(c.UserContext(), r.live.Load().requestTimeout)
	defer cancel()
	c.SetUserContext(pools.With(r.WithOrigin(ctx, c), pools.Management))
	if err := request.RejectNUL(c.Request().URI()); err != nil {
		return err
	}
	if !browser.IsSafe(c.Request().Header.Method()) {
		if err := errors.Join(browser.CheckOrigin(c.Request(), r.BaseURL(c)), browser.CheckJSON(c.Request())); err != nil {
			return err
		}
	}
	if err := r.receiveBody(c, stateOf(c)); err != nil {
		return err
	}
	return h(c)
}

// Check registers a condition of readiness. f runs on every GET /_readiness
// with a deadline of two seconds. The answer of the admin address shows the
// detail of a fault that f returns, and hides the text of any other error.
func (r *Router) Check(name string, f func(ctx context.Context) error) {
	if r.parts.Watches == nil || r.parts.Watches(name) {
		r.readiness.AddCheck(name, f)
	}
}

// ReadinessField adds a field to the answer of GET /_readiness of the admin
// address, ready or not. f returns a value that encodes as JSON; it must not
// block.
func (r *Router) ReadinessField(name string, f func() any) {
	if r.parts.Watches == nil || r.parts.Watches(name) {
		r.readiness.AddField(name, f)
	}
}

// Registered returns the registered routes in the order of matching: those of
// the public address, then those of the admin address.
func (r *Router) Registered() []Route {
	var out []Route
	for _, p := range []*port{r.public, r.admin} {
		for _, rt := range p.table.sorted() {
			out = append(out, Route{Method: rt.method, Path: rt.pattern, Scope: rt.scope, Public: rt.public, Admin: p == r.admin, SecretKeys: rt.secretKeys})
		}
	}
	return out
}

// Authenticate is Token, ProjectID and ProjectOf in one.
func (r *Router) Authenticate(c *fiber.Ctx, p *Payload, env *envelope.Envelope) (auth.Project, error) {
	token, err := Token(c, p, env)
	if err != nil {
		return auth.Project{}, err
	}
	return r.ProjectOf(c, token, ProjectID(p, env))
}

// ProjectOf returns the project of a public request: that of the project key
// token or, if token is a personal key, the one with the number projectID. The
// request counts against the rate limit of the project.
//
// A personal key without a projectID stands for the project that its user works
// in. It fails with Unauthenticated invalid_api_key for an unknown key; with
// Invalid invalid_project (attr project_id) for a projectID that is not a number,
// or that the personal key may not see (then ErrHiddenProject is in the chain);
// with Unauthenticated invalid_personal_api_key for an invalid personal key; and
// with Throttled.
func (r *Router) ProjectOf(c *fiber.Ctx, token, projectID string) (auth.Project, error) {
	p, err := r.auth.projectOf(c, token, projectID)
	if err != nil {
		return auth.Project{}, err
	}
	stateOf(c).project = p.ID
	if err := r.auth.publicRate.Take(p.ID); err != nil {
		r.metrics.Refused("public_rate")
		return p, err
	}
	return p, nil
}

// IP returns the address of the client: the sender of the request or, if that
// is a trusted proxy, the last address in X-Forwarded-For that is not one. It
// is the zero Addr if the address is unknown.
func (r *Router) IP(c *fiber.Ctx) netip.Addr { return r.proxies().Client(c.Context()) }

// Origin returns the origin of the configured URL of the address that the client used, which
// is site_url or console_url, and the prefix of its path. Without an address the origin is empty, which stands for the one that the
// client used, and the prefix is that which a trusted proxy removed.
func (r *Router) Origin(c *fiber.Ctx) (origin, prefix string) {
	site, _ := r.reached(c)
	if site == "" {
		return "", r.proxies().Prefix(c.Context())
	}
	host := strings.Index(site, "://") + len("://")
	if at := strings.IndexByte(site[host:], '/'); at >= 0 {
		return site[:host+at], strings.TrimRight(site[host+at:], "/")
	}
	return site, ""
}

// IsSecure reports whether the client uses HTTPS: by TLS of this server, by what a trusted
// proxy says, or by site_url (console_url for the address of the console).
func (r *Router) IsSecure(c *fiber.Ctx) bool {
	site, p := r.reached(c)
	return strings.HasPrefix(r.proxies().BaseURL(c.Context(), p.scheme(), "localhost"), "https:") || strings.HasPrefix(site, "https:")
}

// BaseURL returns the URL by which the client reached the server, without a slash at the
// end.
func (r *Router) BaseURL(c *fiber.Ctx) string {
	site, p := r.reached(c)
	if site != "" {
		return strings.TrimRight(site, "/")
	}
	return r.proxies().BaseURL(c.Context(), p.scheme(), p.boundAddress())
}

var errDatabaseAway = fault.New(fault.Unavailable, "database_unavailable",
	"The database is away: personal API keys can only read flag definitions for local evaluation.").After(2 * time.Second)

var errSecretKey = fault.New(fault.Forbidden, "permission_denied", "This path does not accept a secret key of a project.")

// serveManaged authenticates a management request and calls h: the key first,
// then the project, then the scope. The body is received before the key only if
// it may hold the key.
func (r *Router) serveManaged(c *fiber.Ctx, rt *route, h func(c *Call) error) error {
	r.metrics.BeginManaging()
	defer r.metrics.EndManaging()
	if strings.HasSuffix(c.Path(), "//") {
		return fiber.ErrNotFound // an empty id, which must not stand for the whole list
	}
	if _, given := credential.Bearer(c.Request()); !given && credential.MayBeInBody(c.Request()) {
		if err := r.receiveBody(c, stateOf(c)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), r.live.Load().requestTimeout)
	defer cancel()
	c.SetUserContext(r.WithOrigin(ctx, c))
	principal, err := r.auth.principal(c, r)
	if err != nil {
		return err
	}
	if !inprocess.Is(c.Context()) {
		if err := r.auth.manageRate.Take(principal.KeyID | principal.SessionID<<32); err != nil {
			r.metrics.Refused("manage_rate")
			return err
		}
	}
	switch {
	case principal.SecretKey && !rt.secretKeys:
		return errSecretKey
	case principal.FromSnapshot && !rt.fromMemory:
		return errDatabaseAway
	}
	call := Call{Ctx: c, Principal: principal, router: r}
	if id := Param(c, "project_id"); id != "" {
		if call.Project, err = r.auth.projectNamed(c, principal, id); err != nil {
			return err
		}
		stateOf(c).project = call.Project.ID
	}
	if err := principal.RequireScope(rt.scope); err != nil {
		return err
	}
	if err := request.RejectNUL(c.Request().URI()); err != nil {
		return err
	}
	if err := r.receiveBody(c, stateOf(c)); err != nil {
		return err
	}
	c.SetUserContext(pools.With(c.UserContext(), pools.Management))
	if err := h(&call); err != nil {
		return err
	}
	call.nameIgnored()
	return call.checkLogged(rt)
}

// routeTable holds the registered routes.
type routeTable struct {
	routes     []*route
	duplicates []error
	public     map[string]bool // by fixed path
}

// sorted returns the routes in the order of matching.
func (t *routeTable) sorted() []*route {
	out := slices.Clone(t.routes)
	slices.SortStableFunc(out, bySpecificity)
	return out
}
