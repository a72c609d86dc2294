package web

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/listener"
)

// The settings with the addresses.
const (
	publicSetting  = "address"
	adminSetting   = "admin_address"
	consoleSetting = "console_address"
)

// Bind binds the addresses of cfg, so that a start on a taken address fails
// before it changes anything. The error names the address and its setting.
func Bind(ctx context.Context, cfg Config) (listener.Bound, error) {
	return listener.BindAll(ctx, map[string]string{publicSetting: cfg.Address, adminSetting: cfg.AdminAddress, consoleSetting: cfg.ConsoleAddress})
}

// UseBound makes Start serve on addresses that are bound already.
func (s *Server) UseBound(b listener.Bound) {
	for _, p := range s.ports() {
		p.early = b[p.setting]
	}
}

// atConsole is the key of the value that marks requests to http.console_address.
type atConsole struct{}

var errNotHere = fault.New(fault.NotFound, "not_found", "The console is served at http.console_address.")

// shareWithConsole makes the address of the console serve what the public one serves.
func (r *Router) shareWithConsole() {
	if r.console == nil {
		return
	}
	shared := r.public.handler
	r.console.handler = func(c *fasthttp.RequestCtx) {
		c.SetUserValue(atConsole{}, true)
		shared(c)
	}
}

// ForConsole fails with NotFound if the console has an address of its own and the request
// came to another one.
func (r *Router) ForConsole(c *fiber.Ctx) error {
	if r.console != nil && c.Context().UserValue(atConsole{}) == nil {
		return errNotHere
	}
	return nil
}

// OnlyConsole returns h for requests to the address of the console (see ForConsole).
func (r *Router) OnlyConsole(h fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := r.ForConsole(c); err != nil {
			return err
		}
		return h(c)
	}
}

// ConsoleURL returns the URL of the console for links, without a slash at the end: that of
// BaseURL, or the one of the address of the console if it has its own.
func (r *Router) ConsoleURL(c *fiber.Ctx) string {
	switch {
	case r.ForConsole(c) == nil:
		return r.BaseURL(c)
	case r.cfg.ConsoleURL != "":
		return strings.TrimRight(r.cfg.ConsoleURL, "/")
	}
	return r.console.url()
}

// reached returns the port of a request, and the configured URL of that port.
func (r *Router) reached(c *fiber.Ctx) (site string, p *port) {
	if r.console != nil && c.Context().UserValue(atConsole{}) != nil {
		return r.cfg.ConsoleURL, r.console
	}
	return r.cfg.SiteURL, routeOf(c).port
}
