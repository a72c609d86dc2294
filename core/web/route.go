package web

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/web/metrics"
)

// Route is a registered route.
type Route struct {
	Method string
	Path   string // with :parameters, without a slash at the end
	Scope  string // that a personal key needs; empty for public paths
	Public bool
	Admin  bool // served on the admin address

	SecretKeys bool // accepts secret keys of projects
}

// noRoute is the name of requests without a route in logs and metrics.
const noRoute = "(none)"

// route is a Route with everything that is prepared before the first request.
type route struct {
	method     string
	pattern    string
	scope      string
	public     bool
	open       bool // any origin may read the answer, as of a public route
	secretKeys bool // admits secret keys of projects
	fromMemory bool // admits keys that were not checked with the database
	body       int  // the maximum size of a body; 0: that of the configuration
	run        fiber.Handler

	router  *Router
	port    *port
	log     *zap.Logger // carries method and route
	metrics *metrics.Route
}

func (rt *route) prepare() {
	rt.log = rt.router.log.With(zap.String("method", rt.method), zap.String("route", rt.pattern))
	if rt.pattern == noRoute { // each line has the method of its request
		rt.log = rt.router.log.With(zap.String("route", rt.pattern))
	}
	rt.metrics = rt.router.metrics.Route(rt.method, rt.pattern)
}

// serve is the Fiber handler: the registered handler with everything that all
// requests have in common around it.
func (rt *route) serve(c *fiber.Ctx) error {
	s := rt.begin(c)
	if rt.public {
		_ = rt.router.receiveBody(c, s) // Body returns the error
		s.start = time.Now()
	}
	s.memory.BeginSmall()
	defer s.memory.EndSmall()
	if err := rt.runRecovered(c, s); err != nil {
		rt.writeError(c, s, err)
	}
	rt.end(c, s)
	return nil
}

func (rt *route) begin(c *fiber.Ctx) *requestState {
	s := stateOf(c)
	s.start = time.Now()
	s.route = rt
	s.id = requestID(c)
	s.memory.Open(rt.router.budget)
	rt.router.metrics.Begin()
	rt.addSecurityHeaders(&c.Response().Header)
	c.Response().Header.SetCanonical(headerRequestID, unsafeBytes(s.id))
	c.SetUserContext(rt.startSpan(c, s))
	rt.addCORSHeaders(c)
	return s
}

var (
	headerTraceParent        = []byte("Traceparent")
	headerTraceState         = []byte("Tracestate")
	headerContentTypeOptions = []byte(fiber.HeaderXContentTypeOptions)
	headerCacheControl       = []byte(fiber.HeaderCacheControl)
	headerTransportSecurity  = []byte(fiber.HeaderStrictTransportSecurity)
	valueNoSniff             = []byte("nosniff")
	valueNoStore             = []byte("no-store")
	valueTransportSecurity   = []byte("max-age=31536000")
)

// addSecurityHeaders adds what keeps browsers from guessing a type, caches from
// storing management answers, and, with TLS on the public address, browsers from
// plain HTTP. A handler
// may replace them.
func (rt *route) addSecurityHeaders(h *fasthttp.ResponseHeader) {
	h.SetCanonical(headerContentTypeOptions, valueNoSniff)
	if !rt.public {
		h.SetCanonical(headerCacheControl, valueNoStore)
	}
	if rt.port.files.Enabled() && rt.port != rt.router.admin {
		h.SetCanonical(headerTransportSecurity, valueTransportSecurity)
	}
}

// runRecovered runs the handler; a panic in it becomes an error.
func (rt *route) runRecovered(c *fiber.Ctx, s *requestState) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.stack = string(debug.Stack())
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if rt.public {
		pools.BeginRequest()
		defer pools.EndRequest()
	}
	return rt.run(c)
}

func (rt *route) end(c *fiber.Ctx, s *requestState) {
	took := time.Since(s.start)
	status := c.Response().StatusCode()
	rt.router.metrics.End()
	rt.metrics.Observe(status, took)
	rt.metrics.ObserveBodies(c.Request().Header.ContentLength(), sentBytes(c))
	s.span.EndRequest(status, s.code, s.id, s.project)
	rt.logRequest(c, s, status, took)
}

// startSpan starts the span of the request if it is traced, and returns its context.
func (rt *route) startSpan(c *fiber.Ctx, s *requestState) (ctx context.Context) {
	ctx = rt.router.base
	if rt.router.tracing != nil {
		h := &c.Request().Header
		ctx, s.span = rt.router.tracing.StartRequest(ctx, rt.method, rt.pattern, h.PeekBytes(headerTraceParent), h.PeekBytes(headerTraceState))
	}
	return ctx
}

// sentBytes returns the size of the body of the answer; 0 for a stream.
func sentBytes(c *fiber.Ctx) int {
	if c.Response().IsBodyStream() {
		return 0
	}
	return len(c.Response().Body())
}

// shape returns the pattern with every parameter spelled alike, so that /a/:x
// and /a/:id are recognized as the same.
func (rt *route) shape() string {
	segs := strings.Split(rt.pattern, "/")
	for i, s := range segs {
		if strings.HasPrefix(s, ":") {
			segs[i] = ":"
		}
	}
	return strings.Join(segs, "/")
}

// add adds a route. It returns false for a duplicate, which err reports.
func (t *routeTable) add(rt *route) bool {
	for _, o := range t.routes {
		if o.method == rt.method && o.shape() == rt.shape() {
			t.duplicates = append(t.duplicates, fmt.Errorf("%s %s is registered twice (also as %s)", rt.method, rt.pattern, o.pattern))
			return false
		}
	}
	t.routes = append(t.routes, rt)
	t.public[rt.pattern] = rt.public
	return true
}

func (t *routeTable) err() error { return errors.Join(t.duplicates...) }

// has reports whether the path of like has a route for method.
func (t *routeTable) has(method string, like *route) bool {
	return slices.ContainsFunc(t.routes, func(o *route) bool {
		return o.method == method && o.shape() == like.shape()
	})
}

// allowed returns the methods of the path of rt, without the rejected one, for
// an Allow header.
func (t *routeTable) allowed(rt *route, rejected string) string {
	var out []string
	for _, o := range t.routes {
		if o.shape() == rt.shape() {
			out = append(out, o.methods()...)
		}
	}
	return strings.Join(slices.DeleteFunc(out, func(method string) bool { return method == rejected }), ", ")
}

// withRejections returns the routes in the order of matching, with a route that
// has no handler for each method of a path that only a more general pattern has:
// it keeps GET of flags/explain from being read as the flag "explain". A path with
// @current is no fixed one: it names an object of the pattern.
func (t *routeTable) withRejections() []*route {
	out := t.sorted()
	for _, rt := range t.sorted() {
		segments := strings.Split(rt.pattern, "/")
		if slices.Contains(segments, current) {
			continue
		}
		for _, other := range t.routes {
			if !other.matches(segments) || other.shape() == rt.shape() {
				continue
			}
			for _, method := range other.methods() {
				if !t.serves(method, rt) {
					out = append(out, &route{method: method, pattern: rt.pattern})
				}
			}
		}
	}
	slices.SortStableFunc(out, bySpecificity)
	return out
}

// methods returns the methods that the route serves.
func (rt *route) methods() []string {
	if rt.method == fiber.MethodGet && !rt.public {
		return []string{fiber.MethodGet, fiber.MethodHead}
	}
	return []string{rt.method}
}

// serves reports whether the path of like is served for method.
func (t *routeTable) serves(method string, like *route) bool {
	return slices.ContainsFunc(t.routes, func(o *route) bool {
		return o.shape() == like.shape() && slices.Contains(o.methods(), method)
	})
}

// find returns the first route in the order of matching whose pattern has the
// path, with any method; nil without one.
func (t *routeTable) find(path string) (found *route) {
	segments := strings.Split(trimSlash(withoutAlias(path)), "/")
	for _, rt := range t.routes {
		if (found == nil || bySpecificity(rt, found) < 0) && rt.matches(segments) {
			found = rt
		}
	}
	return found
}

// setAllow sets the Allow header of an answer without a route: the methods of the
// most specific pattern of the path. Fiber adds those of all patterns.
func (t *routeTable) setAllow(c *fiber.Ctx) {
	if rt := t.find(c.Path()); rt != nil {
		c.Response().Header.Set(fiber.HeaderAllow, t.allowed(rt, c.Method()))
	}
}

// matches reports whether the pattern has the path of these segments.
func (rt *route) matches(segments []string) bool {
	own := strings.Split(rt.pattern, "/")
	if len(own) != len(segments) {
		return false
	}
	for i, s := range own {
		if s != segments[i] && (generality(s) == 0 || segments[i] == "") {
			return false
		}
	}
	return true
}

// bySpecificity orders routes: at the first segment in which two patterns
// differ, a fixed one comes before a parameter, and a shorter pattern before a
// longer one. The order is total, as sorting needs.
func bySpecificity(a, b *route) int {
	as, bs := strings.Split(a.pattern, "/"), strings.Split(b.pattern, "/")
	for i := 0; i < len(as) && i < len(bs); i++ {
		if d := generality(as[i]) - generality(bs[i]); d != 0 {
			return d
		}
	}
	return len(as) - len(bs)
}

// generality is 0 for a fixed segment, 1 for a parameter, 2 for a wildcard.
func generality(segment string) int {
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
