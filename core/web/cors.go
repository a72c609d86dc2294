package web

import (
	"github.com/gofiber/fiber/v2"
)

const (
	publicMethods = "GET, POST, OPTIONS"
	manageMethods = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
	publicHeaders = "X-Requested-With,Content-Type"
	manageHeaders = "Authorization,Content-Type"
	preflightAge  = "86400"
)

// cors says which pages may read the answer. Public paths answer every origin
// by its own name, because browsers refuse a star beside credentials;
// management paths only the origins of the config.
func (r *route) cors(c *fiber.Ctx) {
	if !r.public && len(r.gate.origins) == 0 {
		return
	}
	h := &c.Response().Header
	h.Add(fiber.HeaderVary, fiber.HeaderOrigin)
	origin := c.Request().Header.Peek(fiber.HeaderOrigin)
	if len(origin) == 0 || (!r.public && !r.gate.origins[string(origin)]) {
		return
	}
	h.SetBytesV(fiber.HeaderAccessControlAllowOrigin, origin)
	methods, headers := manageMethods, manageHeaders
	if r.public {
		methods, headers = publicMethods, publicHeaders
		h.Set(fiber.HeaderAccessControlAllowCredentials, "true")
	}
	h.Set(fiber.HeaderAccessControlAllowMethods, methods)
	if c.Method() != fiber.MethodOptions {
		return
	}
	if asked := c.Request().Header.Peek(fiber.HeaderAccessControlRequestHeaders); len(asked) > 0 {
		headers = string(asked)
		h.Add(fiber.HeaderVary, fiber.HeaderAccessControlRequestHeaders)
	}
	h.Set(fiber.HeaderAccessControlAllowHeaders, headers)
	h.Set(fiber.HeaderAccessControlMaxAge, preflightAge)
}

// preflights makes the OPTIONS routes that nobody registered: one for every
// public path, and one for every management path when there are origins that
// may call it.
func (g *Router) preflights() []*route {
	var out []*route
	seen := map[string]bool{}
	for _, r := range g.routes {
		if seen[r.shape()] || g.has(fiber.MethodOptions, r) || (!r.public && len(g.origins) == 0) {
			continue
		}
		seen[r.shape()] = true
		o := &route{method: fiber.MethodOptions, pattern: r.pattern, public: r.public, run: Done, gate: g}
		o.prepare()
		out = append(out, o)
	}
	return out
}
