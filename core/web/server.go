package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web/listener"
)

// Server listens and serves the registered routes.
type Server struct {
	router *Router
	app    *fiber.App
	log    *zap.Logger
	reg    prometheus.Registerer
	info   ServerInfo

	build    sync.Once
	handler  fasthttp.RequestHandler
	buildErr error

	ln         *listener.Listener
	served     chan error
	cancelBase context.CancelFunc
	stopOnce   sync.Once
	stopErr    error
}

// New returns a server without routes. It does not listen yet. reg may be nil
// for no metrics; if it is also a prometheus.Gatherer, and cfg.Metrics is set,
// GET /metrics shows its metrics.
func New(cfg Config, a Auth, log *zap.Logger, reg prometheus.Registerer) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	trusted, err := parseProxies(cfg.TrustedProxies)
	if err != nil {
		return nil, err
	}
	log = log.Named("web")
	base, cancelBase := context.WithCancel(context.Background())
	state := new(lifecycle)
	r := &Router{
		cfg: cfg, log: log, base: base,
		auth:      &authenticator{auth: a, publicRate: newRateLimiter(cfg.PublicRate), manageRate: newRateLimiter(cfg.ManageRate)},
		addresses: &addresses{siteURL: cfg.SiteURL, proxies: trusted, lifecycle: state},
		metrics:   newRequestMetrics(reg),
		access:    newAccessLog(cfg),
		readiness: &readiness{lifecycle: state, log: log},
		table:     routeTable{public: map[string]bool{}},
		origins:   map[string]bool{},
	}
	for _, o := range cfg.ManageOrigins {
		r.origins[o] = true
	}
	r.fallback = newFallbackRoutes(r)
	s := &Server{router: r, log: log, reg: reg, cancelBase: cancelBase, served: make(chan error, 1)}
	s.app = fiber.New(s.settings())
	r.app = s.app
	return s, nil
}

func (s *Server) settings() fiber.Config {
	cfg := s.router.cfg
	return fiber.Config{
		AppName:                      "guidon",
		CaseSensitive:                true,
		DisableStartupMessage:        true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    cfg.BodyBytes,
		Concurrency:                  cfg.MaxConnections,
		ReadBufferSize:               cfg.HeaderBytes,
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		JSONEncoder:                  encode,
		ErrorHandler:                 s.router.notFound,
	}
}

// Router returns the router, for registration before Start.
func (s *Server) Router() *Router { return s.router }

// MapError sets f, which may give a kind to an error without one before it is
// answered, such as failures of the database. It must be called before Start; f
// must be safe for concurrent use.
func (s *Server) MapError(f func(error) error) { s.router.mapError = f }

// Mount registers the routes of features, before Start.
func (s *Server) Mount(features ...Routes) {
	for _, f := range features {
		f.Routes(s.router)
	}
}

// SetInfo sets the description of the server, before Start.
func (s *Server) SetInfo(info ServerInfo) { s.info = info }

// Handler returns all routes as one handler, without a listener. Nothing can be
// registered afterwards.
func (s *Server) Handler() (fasthttp.RequestHandler, error) {
	s.build.Do(func() {
		gatherer, _ := s.reg.(prometheus.Gatherer)
		s.router.addPages(s.info, gatherer)
		s.buildErr = s.router.install(s.app)
		s.handler = s.router.rejectUnknownMethods(s.app.Handler())
	})
	return s.handler, s.buildErr
}

// Start listens and serves requests until Stop. It fails if the address is not
// available, or if a path is registered twice.
func (s *Server) Start(ctx context.Context) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.router.cfg.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.router.cfg.Address, err)
	}
	s.ln = listener.New(ln)
	s.router.addresses.lifecycle.setStarted(ln.Addr().String())
	hs := s.app.Server()
	hs.Handler, hs.ErrorHandler = h, s.router.unreadable
	hs.CloseOnShutdown = true
	hs.Logger = quietLog{s.log}
	go func() { s.served <- hs.Serve(s.ln) }()
	s.log.Info("listening", zap.String("address", s.Address()))
	return nil
}

// Address returns the address of the listener with the actual port; empty before
// Start.
func (s *Server) Address() string { return s.router.addresses.lifecycle.address() }

// Stop stops accepting connections and waits for the requests in flight. If ctx
// ends first, it cancels the contexts of the remaining requests, closes their
// connections and returns an error. Further calls, and calls without Start, do
// nothing.
func (s *Server) Stop(ctx context.Context) error {
	if s.ln == nil {
		return nil
	}
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	s.router.addresses.lifecycle.setStopping()
	wait(ctx, s.router.cfg.StopDelay)
	_ = s.ln.Close()
	s.ln.CloseUnused()
	err := s.app.Server().ShutdownWithContext(ctx)
	s.cancelBase()
	if err != nil {
		s.ln.CloseAll()
		err = fmt.Errorf("stop: some requests did not end in time: %w", err)
	}
	if serveErr := <-s.served; serveErr != nil && !errors.Is(serveErr, net.ErrClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// lifecycle is the state of the server between Start and Stop.
type lifecycle struct {
	addr atomic.Pointer[string]
	stop atomic.Bool
}

func (l *lifecycle) setStarted(address string) { l.addr.Store(&address) }
func (l *lifecycle) setStopping()              { l.stop.Store(true) }
func (l *lifecycle) stopping() bool            { return l.stop.Load() }

func (l *lifecycle) address() string {
	if a := l.addr.Load(); a != nil {
		return *a
	}
	return ""
}

// quietLog logs the messages of the HTTP library about connections at debug
// level.
type quietLog struct{ log *zap.Logger }

func (q quietLog) Printf(format string, args ...any) {
	if line := q.log.Check(zap.DebugLevel, "connection"); line != nil {
		line.Write(zap.String("message", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}
