package web

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"
)

// Route is one registered way in.
type Route struct {
	Method string
	Path   string // with :parameters, without a slash at the end
	Scope  string // what a personal key needs; always empty for public paths
	Public bool
}

// noRoute is what logs and metrics call a request that no route took.
const noRoute = "(none)"

// route is a Route with everything that can be made ready before the first
// request comes.
type route struct {
	method  string
	pattern string
	scope   string
	public  bool
	run     fiber.Handler

	gate  *Router
	log   *zap.Logger // carries method and route
	meter *routeMeter
}

func (r *route) prepare() {
	r.log = r.gate.log.With(zap.String("method", r.method), zap.String("route", r.pattern))
	r.meter = r.gate.meter.route(r.method, r.pattern)
}

// serve is what Fiber calls: the handler of the room, and around it all that
// every request has in common.
func (r *route) serve(c *fiber.Ctx) error {
	v := r.begin(c)
	if err := r.guarded(c, v); err != nil {
		r.fail(c, v, err)
	}
	r.end(c, v)
	return nil
}

func (r *route) begin(c *fiber.Ctx) *requestState {
	v := stateOf(c)
	v.start = time.Now()
	v.route = r
	v.id = requestID(c)
	r.gate.meter.enter()
	c.Response().Header.SetCanonical(headerRequestID, unsafeBytes(v.id))
	c.SetUserContext(r.gate.base)
	r.cors(c)
	return v
}

func (r *route) end(c *fiber.Ctx, v *requestState) {
	took := time.Since(v.start)
	status := c.Response().StatusCode()
	r.gate.meter.leave()
	r.meter.observe(status, took)
	r.record(c, v, status, took)
}

// shape is the pattern with every parameter spelled alike, so that /a/:x and
// /a/:id are seen to be the same.
func (r *route) shape() string {
	segs := strings.Split(r.pattern, "/")
	for i, s := range segs {
		if strings.HasPrefix(s, ":") {
			segs[i] = ":"
		}
	}
	return strings.Join(segs, "/")
}

// byPlace sorts routes so that at the first segment in which two patterns
// differ, the fixed one is tried before the one with a parameter, and a shorter
// pattern before a longer one: a total order, as sorting needs.
func byPlace(a, b *route) int {
	as, bs := strings.Split(a.pattern, "/"), strings.Split(b.pattern, "/")
	for i := 0; i < len(as) && i < len(bs); i++ {
		if d := looseness(as[i]) - looseness(bs[i]); d != 0 {
			return d
		}
	}
	return len(as) - len(bs)
}

func looseness(segment string) int {
	switch {
	case strings.ContainsAny(segment, "*+"):
		return 2
	case strings.Contains(segment, ":"):
		return 1
	}
	return 0
}

func trimSlash(path string) string {
	if t := strings.TrimRight(path, "/"); t != "" {
		return t
	}
	return "/"
}

// allowed lists the methods of the path of r, without the refused one.
func (g *Router) allowed(r *route, refused string) string {
	var out []string
	for _, o := range g.routes {
		if o.shape() == r.shape() && o.method != refused {
			out = append(out, o.method)
			if o.method == fiber.MethodGet {
				out = append(out, fiber.MethodHead)
			}
		}
	}
	return strings.Join(out, ", ")
}
