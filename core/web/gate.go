package web

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"
)

// Router is where rooms say what they serve, and what handlers ask who is
// there. Registering is for one goroutine and before the server starts;
// everything else may run in parallel.
type Router struct {
	cfg     Config
	auth    Auth
	log     *zap.Logger
	proxies proxies
	public  *throttle
	manage  *throttle
	meter   *meter
	mend    func(error) error // nil: errors stay as they are
	base    context.Context   // ends when a stop has run out of patience

	routes     []*route
	checks     []check
	tellers    []teller
	app        *fiber.App
	none       *route // stands for management requests that no route took
	nonePublic *route // the same for public ones
	sampled    sampler
	faults     []error
	faces      map[string]bool // of fixed paths: is it public?
	origins    map[string]bool
	turn       turn
}

// Public registers h for a path that client libraries call: any origin may,
// preflights are answered, and errors have the public face {type, code,
// detail} with attr only when there is one. The path works with and without a
// slash at the end. Nobody has been asked for a key: h does that with
// Body, Token and ProjectOf, or with Admit.
func (g *Router) Public(method, path string, h func(c *fiber.Ctx) error) {
	g.add(&route{method: method, pattern: path, public: true, run: h})
}

// Manage registers h for a management path. Before h runs, the request has a
// valid personal key (else 401) that may act with scope (else 403; an empty
// scope asks for nothing more than a key), and when the path has a
// :project_id, Call.Project is that project (else 404). Errors have the
// management face with its four keys. GET also answers HEAD.
func (g *Router) Manage(method, path, scope string, h func(c *Call) error) {
	r := &route{method: method, pattern: path, scope: scope}
	r.run = func(c *fiber.Ctx) error { return g.enter(c, r, h) }
	g.add(r)
}

// Check registers something that must work before the server calls itself
// ready. f runs on every GET /_readiness, with a deadline of two seconds; the
// detail of a fault it returns is shown, the text of any other error is not.
func (g *Router) Check(name string, f func(ctx context.Context) error) {
	g.checks = append(g.checks, check{name, f})
}

// ReadinessField adds a field to what GET /_readiness answers, whether the server is ready
// or not. f returns something that encodes as JSON; it must not block, and what
// it says can be read by everybody.
func (g *Router) ReadinessField(name string, f func() any) {
	g.tellers = append(g.tellers, teller{name, f})
}

// Registered lists what has been registered, in the order in which the gate
// tries it.
func (g *Router) Registered() []Route {
	rs := slices.Clone(g.routes)
	slices.SortStableFunc(rs, byPlace)
	out := make([]Route, 0, len(rs))
	for _, r := range rs {
		out = append(out, Route{Method: r.method, Path: r.pattern, Scope: r.scope, Public: r.public})
	}
	return out
}

func (g *Router) add(r *route) {
	r.gate = g
	r.pattern = trimSlash(r.pattern)
	for _, o := range g.routes {
		if o.method == r.method && o.shape() == r.shape() {
			g.faults = append(g.faults, fmt.Errorf("%s %s is registered twice (also as %s)", r.method, r.pattern, o.pattern))
			return
		}
	}
	r.prepare()
	g.routes = append(g.routes, r)
	g.faces[r.pattern] = r.public
}

// install hands every route to app, fixed segments before parameters.
func (g *Router) install(app *fiber.App) error {
	if len(g.faults) > 0 {
		return errors.Join(g.faults...)
	}
	slices.SortStableFunc(g.routes, byPlace)
	for _, r := range g.routes {
		app.Add(r.method, r.pattern, r.serve)
		if r.method == fiber.MethodGet && !r.public && !g.has(fiber.MethodHead, r) {
			app.Add(fiber.MethodHead, r.pattern, r.serve)
		}
	}
	for _, r := range g.preflights() {
		app.Add(r.method, r.pattern, r.serve)
	}
	return nil
}

func (g *Router) has(method string, like *route) bool {
	return slices.ContainsFunc(g.routes, func(o *route) bool {
		return o.method == method && o.shape() == like.shape()
	})
}
