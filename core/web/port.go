package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web/accesslog"
	"github.com/guidonhq/guidon/core/web/framing"
	"github.com/guidonhq/guidon/core/web/listener"
	"github.com/guidonhq/guidon/core/web/receive"
	"github.com/guidonhq/guidon/core/web/tlsfiles"
)

// port is one address that the server listens on, with the routes that it
// serves there: the public port for clients and the management API, the admin
// port for operators.
type port struct {
	router   *Router
	setting  string // the name of the setting with the address
	address  string // as configured
	files    tlsfiles.Files
	most     int // connections
	table    routeTable
	fallback fallbackRoutes
	app      *fiber.App

	build    sync.Once
	handler  fasthttp.RequestHandler
	buildErr error

	bound  atomic.Pointer[string] // the address with the actual port, after listen
	early  net.Listener           // bound before the server was made, or nil
	ln     *listener.Listener     // nil before listen
	served chan error
}

func newPort(r *Router, setting, address string, files tlsfiles.Files, most int) *port {
	p := &port{router: r, setting: setting, address: address, files: files, most: most, table: routeTable{public: map[string]bool{}}, served: make(chan error, 1)}
	p.fallback = newFallbackRoutes(p)
	p.app = fiber.New(p.settings())
	return p
}

func (p *port) settings() fiber.Config {
	cfg := p.router.cfg
	return fiber.Config{
		AppName:                      "guidon",
		CaseSensitive:                true,
		DisableStartupMessage:        true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    cfg.BodyBytes,
		StreamRequestBody:            true,       // receiveBody reads it
		Concurrency:                  2 * p.most, // the listener has the bound
		ReadBufferSize:               cfg.HeaderBytes,
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		JSONEncoder:                  encode,
		ErrorHandler:                 p.notFound,
	}
}

// add registers a route in front of the fallback.
func (p *port) add(rt *route) {
	rt.router, rt.port = p.router, p
	rt.pattern = trimSlash(rt.pattern)
	if refuse := p.router.parts.Refuse; refuse != nil && p != p.router.admin {
		if err := refuse(rt.pattern); err != nil {
			rt.run = func(*fiber.Ctx) error { return err }
		}
	}
	if p.table.add(rt) {
		rt.prepare()
	}
}

// requestHandler returns all routes as one handler. No route can be added
// afterwards.
func (p *port) requestHandler() (fasthttp.RequestHandler, error) {
	p.build.Do(func() {
		p.buildErr = p.install()
		p.handler = receive.Finish(p.rejectUnknownMethods(p.app.Handler()))
	})
	return p.handler, p.buildErr
}

// install hands every route to Fiber, fixed segments before parameters.
func (p *port) install() error {
	if err := p.table.err(); err != nil {
		return err
	}
	for _, rt := range p.table.withRejections() {
		if rt.run == nil {
			p.reject(rt.method, rt.pattern)
			continue
		}
		p.register(rt.method, rt)
		if rt.method == fiber.MethodGet && !rt.public && !p.table.has(fiber.MethodHead, rt) {
			p.register(fiber.MethodHead, rt)
		}
	}
	for _, rt := range p.options() {
		p.register(rt.method, rt)
	}
	return nil
}

// listen binds the address unless that was done before. Clients can connect from
// then on; serve answers them.
func (p *port) listen(ctx context.Context) (err error) {
	opts, err := p.listenerOptions()
	if err != nil {
		return fmt.Errorf("http.%s: %w", strings.Replace(p.setting, "address", "tls", 1), err)
	}
	ln := p.early
	if ln == nil {
		if ln, err = listener.Bind(ctx, p.setting, p.address); err != nil {
			return err
		}
	}
	p.ln = listener.New(ln, opts)
	bound := ln.Addr().String()
	if ln.Addr().Network() == "unix" {
		bound = listener.UnixPrefix + bound
	}
	p.bound.Store(&bound)
	return nil
}

// listenerOptions returns the bounds of the port's connections.
func (p *port) listenerOptions() (listener.Options, error) {
	r := p.router
	opts := listener.Options{
		MaxConnections: p.most, PerClient: r.cfg.ClientConnections, Exempt: func(a netip.Addr) bool { return r.proxies().Contains(a) },
		Refused: r.metrics.Refused,
		Failed:  r.metrics.AcceptFailed(r.log),
	}
	if !p.files.Enabled() {
		return opts, nil
	}
	var err error
	opts.TLS, err = tlsfiles.Config(p.files, r.log)
	return opts, err
}

// scheme returns the scheme of URLs to the port.
func (p *port) scheme() string {
	if p.files.Enabled() {
		return "https"
	}
	return "http"
}

// serve answers requests in the background until stop.
func (p *port) serve() {
	hs := p.app.Server()
	hs.Handler, hs.ErrorHandler = p.rejectRebound(p.handler), p.unreadable
	hs.HeaderReceived = framing.Guard(func() { p.router.metrics.Refused("framing") })
	hs.CloseOnShutdown, hs.KeepHijackedConns = true, true // core/web/stream closes its connections
	hs.Logger = accesslog.Connections{Log: p.router.log}
	go func() { p.served <- hs.Serve(p.ln) }()
	p.router.log.Info("listening", zap.String("address", p.boundAddress()), zap.String("setting", "http."+p.setting))
}

// boundAddress returns the address with the actual port; empty before listen.
func (p *port) boundAddress() string {
	if a := p.bound.Load(); a != nil {
		return *a
	}
	return ""
}

// url returns the URL of the bound address; empty for a Unix socket.
func (p *port) url() string {
	bound := p.boundAddress()
	if bound == "" || strings.HasPrefix(bound, listener.UnixPrefix) {
		return ""
	}
	return p.scheme() + "://" + bound
}

// closeListener stops accepting connections and closes those without a request.
func (p *port) closeListener() {
	if p.ln != nil {
		_ = p.ln.Close()
		p.ln.CloseUnused()
	}
}

// shutdown waits for the requests in flight until ctx ends.
func (p *port) shutdown(ctx context.Context) error {
	if p.ln == nil {
		return nil
	}
	return p.app.Server().ShutdownWithContext(ctx)
}

// closeAll closes the remaining connections if broken, and waits until serve has
// ended.
func (p *port) closeAll(broken bool) error {
	if p.ln == nil {
		return nil
	}
	if broken {
		p.ln.CloseAll()
	}
	if err := <-p.served; err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
