package web

import (
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/framing"
	"github.com/guidonhq/guidon/core/web/hostname"
	"github.com/guidonhq/guidon/core/web/receive"
)

// fallbackRoutes answer requests without a route, one for each error format.
// unknown is for paths below /api/ that no route has: in the management format,
// and readable for pages of any origin, which would see a network error else.
type fallbackRoutes struct{ management, public, unknown *route }

func newFallbackRoutes(p *port) fallbackRoutes {
	f := fallbackRoutes{
		management: &route{router: p.router, port: p, pattern: noRoute, method: "(any)"},
		public:     &route{router: p.router, port: p, pattern: noRoute, method: "(any)", public: true},
		unknown:    &route{router: p.router, port: p, pattern: noRoute, method: "(any)", open: p != p.router.admin},
	}
	f.management.prepare()
	f.public.prepare()
	f.unknown.prepare()
	return f
}

// notFound answers a request without a route: 404, or 405 if the path has
// routes for other methods. It is the error handler of Fiber.
func (p *port) notFound(c *fiber.Ctx, err error) error {
	rt := p.fallbackFor(c.Path())
	s := rt.begin(c)
	if e, ok := errors.AsType[*fiber.Error](err); ok && e.Code == fiber.StatusMethodNotAllowed {
		p.table.setAllow(c)
	}
	rt.writeError(c, s, err)
	rt.end(c, s)
	return nil
}

// fallbackFor returns the fallback route with the error format of a path: that
// of its routes; of paths without routes, those below /api/ have the
// management format.
func (p *port) fallbackFor(path string) *route {
	switch public, known := p.table.public[trimSlash(path)]; {
	case !known && p.table.find(path) == nil && strings.HasPrefix(path, "/api/"):
		return p.fallback.unknown
	case known && !public, !known && strings.HasPrefix(path, "/api/"):
		return p.fallback.management
	}
	return p.fallback.public
}

// rejectUnknownMethods answers methods that Fiber does not know, which it would
// answer in a format of its own.
func (p *port) rejectUnknownMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		switch unsafeString(ctx.Method()) {
		case fiber.MethodGet, fiber.MethodPost, fiber.MethodPut, fiber.MethodPatch, fiber.MethodDelete,
			fiber.MethodHead, fiber.MethodOptions, fiber.MethodTrace, fiber.MethodConnect:
			next(ctx)
		case framing.Refused:
			ctx.SetConnectionClose()
			p.rejectRaw(ctx, fiber.StatusBadRequest)
		default:
			ctx.Response.Header.Set(fiber.HeaderAllow, "GET, HEAD, "+manageMethods[len("GET, "):])
			p.rejectRaw(ctx, fiber.StatusMethodNotAllowed)
		}
	}
}

// rejectRebound answers requests to the admin address on loopback that name
// another host (see hostname) with 421. Client certificates make it needless.
func (p *port) rejectRebound(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	if p != p.router.admin || !hostname.IsLoopback(p.ln.Addr()) || p.files.ClientCAFile != "" {
		return next
	}
	return func(ctx *fasthttp.RequestCtx) {
		if hostname.NamesLoopback(unsafeString(ctx.Host())) {
			next(ctx)
		} else {
			p.rejectRaw(ctx, fiber.StatusMisdirectedRequest)
		}
	}
}

// unreadable answers a request that could not be read to its end.
func (p *port) unreadable(ctx *fasthttp.RequestCtx, err error) {
	status := receive.StatusOf(err)
	if c := receive.Conn(ctx); c != nil {
		if !c.Received() {
			ctx.SetStatusCode(status) // an unused connection gets no log line and no body
			return
		}
		c.DrainOnClose(status != fiber.StatusRequestTimeout)
	}
	p.rejectRaw(ctx, status)
}

// rejectRaw answers outside of Fiber's routing.
func (p *port) rejectRaw(ctx *fasthttp.RequestCtx, status int) {
	c := p.app.AcquireCtx(ctx)
	defer p.app.ReleaseCtx(c)
	_ = p.notFound(c, fiber.NewError(status))
}
