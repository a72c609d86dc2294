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

// checkTimeout bounds one readiness check.
const checkTimeout = 2 * time.Second

// check is a condition of readiness.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// readinessField is an additional field of the readiness answer.
type readinessField struct {
	name  string
	value func() any
}

// ServerInfo describes the server to its clients.
type ServerInfo struct {
	Version string // shown at /
	OpenAPI []byte // served at /openapi.yaml; empty: not served
}

// addPages registers the server's own pages.
func (r *Router) addPages(info ServerInfo, gatherer prometheus.Gatherer) {
	r.addPage("/_liveness", func(c *fiber.Ctx) error { return c.SendString("alive") })
	r.addPage("/_readiness", r.readiness.serve)
	r.addPage("/", func(c *fiber.Ctx) error {
		return JSON(c, map[string]string{"name": "guidon", "version": info.Version})
	})
	if len(info.OpenAPI) > 0 {
		r.addPage("/openapi.yaml", func(c *fiber.Ctx) error {
			c.Set(fiber.HeaderContentType, "application/yaml")
			return c.Send(info.OpenAPI)
		})
	}
	if r.cfg.Metrics && gatherer != nil {
		r.addPage("/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{})))
	}
}

// addPage registers a page for operators: GET and HEAD, without a key, for the
// server's own origin.
func (r *Router) addPage(path string, h fiber.Handler) {
	r.add(&route{method: fiber.MethodGet, pattern: path, run: h})
}

// readiness runs the readiness checks.
type readiness struct {
	checks    []check
	fields    []readinessField
	lifecycle *lifecycle
	log       *zap.Logger
}

// serve answers 200 if every check passes, else 503 with the names of the
// failed checks and, for faults, their details. Both answers have the
// additional fields.
func (r *readiness) serve(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), checkTimeout)
	defer cancel()
	failed := r.runChecks(ctx)
	if r.lifecycle.stopping() {
		failed["server"] = "stopping"
	}
	out := make(map[string]any, len(r.fields)+2)
	for _, f := range r.fields {
		out[f.name] = f.value()
	}
	if len(failed) == 0 {
		out["status"] = "ready"
		return JSON(c, out)
	}
	c.Set(fiber.HeaderRetryAfter, "1")
	c.Status(fiber.StatusServiceUnavailable)
	out["status"], out["not_ready"] = "not ready", failed
	return JSON(c, out)
}

// runChecks runs all checks concurrently and returns the failures by name.
func (r *readiness) runChecks(ctx context.Context) map[string]string {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		out = map[string]string{}
	)
	for _, k := range r.checks {
		wg.Go(func() {
			err := r.runCheck(ctx, k)
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

// runCheck runs one check. It does not wait for a check that ignores its
// deadline.
func (r *readiness) runCheck(ctx context.Context, k check) error {
	result := make(chan error, 1)
	go func() { result <- k.run(ctx) }()
	select {
	case err := <-result:
		if err != nil {
			r.log.Warn("readiness check failed", zap.String("check", k.name), zap.Error(err))
		}
		return err
	case <-ctx.Done():
		r.log.Warn("readiness check timed out", zap.String("check", k.name))
		return ctx.Err()
	}
}
