package web

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web/ignored"
)

const (
	publicMethods = "GET, POST, OPTIONS"
	manageMethods = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
	publicHeaders = "X-Requested-With,Content-Type"
	manageHeaders = "Authorization,Content-Type"
	preflightAge  = "86400"
)

// addCORSHeaders adds the headers that allow pages of other origins to read the
// answer. Public paths name every origin, because browsers reject a star with
// credentials; management paths name only configured origins.
func (rt *route) addCORSHeaders(c *fiber.Ctx) {
	anyOrigin := rt.public || rt.open
	origins := rt.router.live.Load().origins
	if !anyOrigin && len(origins) == 0 {
		return
	}
	h := &c.Response().Header
	h.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	origin := c.Request().Header.Peek(fiber.HeaderOrigin)
	if len(origin) == 0 || (!anyOrigin && !origins[string(origin)]) {
		return
	}
	h.SetBytesV(fiber.HeaderAccessControlAllowOrigin, origin)
	methods, headers := manageMethods, manageHeaders
	if anyOrigin {
		methods, headers = publicMethods, publicHeaders
		h.Set(fiber.HeaderAccessControlAllowCredentials, "true")
	}
	if !rt.public {
		h.Set(fiber.HeaderAccessControlExposeHeaders, ignored.Header)
	}
	h.Set(fiber.HeaderAccessControlAllowMethods, methods)
	if c.Method() != fiber.MethodOptions {
		return
	}
	if requested := c.Request().Header.Peek(fiber.HeaderAccessControlRequestHeaders); len(requested) > 0 {
		headers = string(requested)
		h.Add(fiber.HeaderVary, fiber.HeaderAccessControlRequestHeaders)
	}
	h.Set(fiber.HeaderAccessControlAllowHeaders, headers)
	h.Set(fiber.HeaderAccessControlMaxAge, preflightAge)
}

// options returns OPTIONS routes for the paths without one. On public paths they
// answer preflights; see serveOptions for management paths.
func (p *port) options() []*route {
	var out []*route
	seen := map[string]bool{}
	for _, rt := range p.table.sorted() {
		page := !rt.public && !strings.HasPrefix(rt.pattern, "/api/")
		if seen[rt.shape()] || p.table.has(fiber.MethodOptions, rt) || page && len(p.router.cfg.ManageOrigins) == 0 {
			continue
		}
		seen[rt.shape()] = true
		o := &route{method: fiber.MethodOptions, pattern: rt.pattern, public: rt.public, run: Done, router: p.router, port: p}
		if !rt.public {
			o.run = func(c *fiber.Ctx) error { return p.router.serveOptions(c, o) }
		}
		o.prepare()
		out = append(out, o)
	}
	return out
}
