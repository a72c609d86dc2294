package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// checkPatience is how long one readiness check may take.
const checkPatience = 2 * time.Second

// check is something that has to work before the server is ready.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// teller is something that is worth knowing about a server.
type teller struct {
	name string
	tell func() any
}

// ServerInfo is what the server says of itself.
type ServerInfo struct {
	Version string // shown at /
	OpenAPI []byte // served at /openapi.yaml; empty: there is no such page
}

// pages registers what the gate itself serves.
func (g *Router) pages(about ServerInfo, gatherer prometheus.Gatherer) {
	g.page("/_liveness", func(c *fiber.Ctx) error { return c.SendString("alive") })
	g.page("/_readiness", g.readiness)
	g.page("/", func(c *fiber.Ctx) error {
		return JSON(c, map[string]string{"name": "guidon", "version": about.Version})
	})
	if len(about.OpenAPI) > 0 {
		g.page("/openapi.yaml", func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, "application/yaml")
			return c.Send(about.OpenAPI)
		})
	}
	if g.cfg.Metrics && gatherer != nil {
		g.page("/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{})))
	}
}

// page registers a page for operators: GET and HEAD, no key, no other origin.
func (g *Router) page(path string, h fiber.Handler) {
	g.add(&route{method: fiber.MethodGet, pattern: path, run: h})
}

// readiness answers 200 when every check passes, else 503 with the names of
// those that did not and, where it is meant to be read, why. Either way it adds
// what others tell.
func (g *Router) readiness(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), checkPatience)
	defer cancel()
	missing := g.missing(ctx)
	if g.turn.stopping() {
		missing["server"] = "stopping"
	}
	out := make(map[string]any, len(g.tellers)+2)
	for _, t := range g.tellers {
		out[t.name] = t.tell()
	}
	if len(missing) == 0 {
		out["status"] = "ready"
		return JSON(c, out)
	}
	c.Set(fiber.HeaderRetryAfter, "1")
	c.Status(fiber.StatusServiceUnavailable)
	out["status"], out["not_ready"] = "not ready", missing
	return JSON(c, out)
}

// missing runs all checks at once and returns what fails, by name.
func (g *Router) missing(ctx context.Context) map[string]string {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		out = map[string]string{}
	)
	for _, k := range g.checks {
		wg.Go(func() {
			err := g.ask(ctx, k)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[k.name] = "not available"
			if f := fault.From(err); f != nil && f.Detail != "" {
				out[k.name] = f.Detail
			} else if errors.Is(err, context.DeadlineExceeded) {
				out[k.name] = "no answer in time"
			}
		})
	}
	wg.Wait()
	return out
}

// ask runs one check, and does not wait for one that ignores its deadline.
func (g *Router) ask(ctx context.Context, k check) error {
	answer := make(chan error, 1)
	go func() { answer <- k.run(ctx) }()
	select {
	case err := <-answer:
		if err != nil {
			g.log.Warn("readiness check failed", zap.String("check", k.name), zap.Error(err))
		}
		return err
	case <-ctx.Done():
		g.log.Warn("readiness check gave no answer in time", zap.String("check", k.name))
		return ctx.Err()
	}
}
