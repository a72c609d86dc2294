package web

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/listener"
)

// missed answers a request that no route took: 404, or 405 when the path is
// there for another method. It is also what Fiber calls for any error that
// gets past a route, which none does.
func (g *Router) missed(c *fiber.Ctx, err error) error {
	r := g.faceOf(c.Path())
	v := r.begin(c)
	r.fail(c, v, err)
	r.end(c, v)
	return nil
}

// faceOf returns the stand-in route that shows the face of a path: that of
// the routes it has, else everything under /api/ shows the management face.
func (g *Router) faceOf(path string) *route {
	public, known := g.faces[trimSlash(path)]
	if (known && !public) || (!known && strings.HasPrefix(path, "/api/")) {
		return g.none
	}
	return g.nonePublic
}

// outermost keeps from Fiber what it would answer in words of its own.
func (g *Router) outermost(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		switch unsafeString(ctx.Method()) {
		case fiber.MethodGet, fiber.MethodPost, fiber.MethodPut, fiber.MethodPatch, fiber.MethodDelete,
			fiber.MethodHead, fiber.MethodOptions, fiber.MethodTrace, fiber.MethodConnect:
			next(ctx)
		default:
			ctx.Response.Header.Set(fiber.HeaderAllow, "GET, HEAD, "+manageMethods[len("GET, "):])
			g.refuse(ctx, fiber.StatusMethodNotAllowed)
		}
	}
}

// broken answers a request that could not be read to its end.
func (g *Router) broken(ctx *fasthttp.RequestCtx, err error) {
	status := fiber.StatusBadRequest
	netErr, isNet := errors.AsType[net.Error](err)
	small := new(fasthttp.ErrSmallBuffer)
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status = fiber.StatusRequestEntityTooLarge
	case errors.As(err, &small):
		status = fiber.StatusRequestHeaderFieldsTooLarge
	case isNet && netErr.Timeout():
		status = fiber.StatusRequestTimeout
	}
	if c, ok := ctx.Conn().(*listener.Conn); ok {
		if !c.Received() {
			ctx.SetStatusCode(status) // nobody has asked anything: no line, no body
			return
		}
		c.DrainOnClose(status != fiber.StatusRequestTimeout)
	}
	g.refuse(ctx, status)
}

// refuse answers outside of Fiber's routing.
func (g *Router) refuse(ctx *fasthttp.RequestCtx, status int) {
	c := g.app.AcquireCtx(ctx)
	defer g.app.ReleaseCtx(c)
	_ = g.missed(c, fiber.NewError(status))
}

// deadline is the context of a management request.
func (g *Router) deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(g.base, g.cfg.RequestTimeout)
}
