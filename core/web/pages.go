package web

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp/pprofhandler"
)

// ServerInfo describes the server to its clients.
type ServerInfo struct {
	Version string // shown at / of the admin address
	OpenAPI []byte // served at /openapi.yaml; empty: not served
}

// addPages registers the server's own pages. The public address shows only whether it works.
func (r *Router) addPages(info ServerInfo, gatherer prometheus.Gatherer) {
	r.addPage(r.public, "/_liveness", alive)
	r.addPage(r.public, "/_readiness", r.serveStatus)
	if r.public.table.find("/") == nil { // the console has it
		r.addPage(r.public, "/", func(c *fiber.Ctx) error { return JSON(c, map[string]string{"name": "guidon"}) })
	}
	if len(info.OpenAPI) > 0 {
		r.addPage(r.public, "/openapi.yaml", func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, "application/yaml")
			return c.Send(info.OpenAPI)
		})
	}
	r.addPage(r.admin, "/_liveness", alive)
	r.addPage(r.admin, "/_readiness", r.serveReport)
	r.addPage(r.admin, "/", func(c *fiber.Ctx) error { return JSON(c, map[string]string{"name": "guidon", "version": info.Version}) })
	if r.cfg.Metrics && gatherer != nil {
		r.addPage(r.admin, "/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{})))
	}
	if r.cfg.Pprof {
		r.addPage(r.admin, "/debug/pprof", servePprof)
		r.addPage(r.admin, "/debug/pprof/:profile", servePprof)
	}
}

// addPage registers a page of the server itself: GET and HEAD, without a key.
func (r *Router) addPage(p *port, path string, h fiber.Handler) {
	p.add(&route{method: fiber.MethodGet, pattern: path, run: h})
}

func alive(c *fiber.Ctx) error { return c.SendString("alive") }
func servePprof(c *fiber.Ctx) error {
	pprofhandler.PprofHandler(c.Context())
	return nil
}

// serveStatus answers 200 if every readiness check passes, else 503, and names nothing.
func (r *Router) serveStatus(c *fiber.Ctx) error {
	if len(r.readiness.Ready(c.UserContext())) == 0 {
		return JSON(c, map[string]string{"status": "ready"})
	}
	setUnavailable(c)
	return JSON(c, map[string]string{"status": "not ready"})
}

// Readiness returns the answer of GET /_readiness of the admin address.
func (r *Router) Readiness(ctx context.Context) (map[string]any, bool) {
	return r.readiness.Report(ctx)
}

// serveReport answers like serveStatus, with the failed checks, their details, and fields.
func (r *Router) serveReport(c *fiber.Ctx) error {
	report, ready := r.readiness.Report(c.UserContext())
	if !ready {
		setUnavailable(c)
	}
	return JSON(c, report)
}

func setUnavailable(c *fiber.Ctx) {
	c.Set(fiber.HeaderRetryAfter, "1")
	c.Status(fiber.StatusServiceUnavailable)
}
