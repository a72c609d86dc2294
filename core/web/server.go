package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web/budget"
	"github.com/guidonhq/guidon/core/web/health"
	"github.com/guidonhq/guidon/core/web/inprocess"
	"github.com/guidonhq/guidon/core/web/limit"
	"github.com/guidonhq/guidon/core/web/listener"
	"github.com/guidonhq/guidon/core/web/metrics"
)

// maxLimitedKeys bounds the memory of each rate limit: about 15 MB.
const maxLimitedKeys = 100_000

// maxAdminConnections bounds the connections of the admin address: a flood of
// clients on the public one leaves it usable.
const maxAdminConnections = 128

// maxConnections returns the bounds of the connections of both addresses. The
// public one is the configured one, or less if the process may not open so many
// files.
func maxConnections(cfg Config, log *zap.Logger) (public, admin int) {
	all, files := listener.MaxByDescriptors()
	public, admin = listener.Split(all, maxAdminConnections)
	if public >= cfg.MaxConnections {
		return cfg.MaxConnections, admin
	}
	log.Info("connections limited by the number of open files", zap.Int("max_connections", public), zap.Int("open_files", files))
	return public, admin
}

// Server listens on the public and the admin address and serves the registered
// routes.
type Server struct {
	router *Router
	reg    prometheus.Registerer
	info   ServerInfo

	pages      sync.Once
	cancelBase context.CancelFunc
	stopOnce   sync.Once
	stopErr    error
}

// New returns a server without routes. It does not listen yet. reg may be nil
// for no metrics; if it is also a prometheus.Gatherer, and cfg.Metrics is set,
// GET /metrics of the admin address shows its metrics.
func New(cfg Config, a Auth, log *zap.Logger, reg prometheus.Registerer) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log = log.Named("web")
	base, cancelBase := context.WithCancel(context.Background())
	r := &Router{
		cfg: cfg, log: log, base: base,
		metrics:   metrics.New(reg),
		readiness: health.New(log),
		budget:    budget.New(cfg.MemoryBytes),
	}
	r.budget.Register(reg)
	failedKeys := func() { r.metrics.Refused("failed_keys") }
	r.auth = &authenticator{
		auth: a, client: r.IP,
		projectFailures:  newFailures(a, cfg, failedKeys),
		personalFailures: newFailures(a, cfg, failedKeys),
		publicRate:       limit.NewAdjustable[int64](cfg.PublicRate, maxLimitedKeys), manageRate: limit.NewAdjustable[int64](cfg.ManageRate, maxLimitedKeys),
	}
	r.applyLive(&cfg)
	public, admin := maxConnections(cfg, log)
	r.public = newPort(r, publicSetting, cfg.Address, cfg.TLS, public)
	r.admin = newPort(r, adminSetting, cfg.AdminAddress, cfg.AdminTLS, admin)
	if cfg.ConsoleAddress != "" {
		r.console = newPort(r, consoleSetting, cfg.ConsoleAddress, cfg.TLS, admin)
	}
	return &Server{router: r, reg: reg, cancelBase: cancelBase}, nil
}

// Router returns the router, for registration before Start.
func (s *Server) Router() *Router { return s.router }

// MapError sets f, which may replace an error before it is answered, such as a failure
// of the database without a kind. It must be called before Start; f
// must be safe for concurrent use.
func (s *Server) MapError(f func(error) error) { s.router.mapError = f }

// Parts leaves out parts of what features register. Nil functions leave out nothing.
type Parts struct {
	// Refuse returns the answer to the requests of a public path, nil to serve them.
	Refuse func(path string) error
	// Watches reports whether a check or field is part of readiness.
	Watches func(name string) bool
}

// Restrict limits the routes and checks that are registered afterwards to p.
func (s *Server) Restrict(p Parts) { s.router.parts = p }

// Trace records the spans of requests, before Start. t may be nil.
func (s *Server) Trace(t *tracing.Tracing) {
	s.router.tracing = t
	s.router.base = t.Untraced(s.router.base)
}

// Mount registers the routes of features, before Start.
func (s *Server) Mount(features ...Routes) {
	for _, f := range features {
		f.Routes(s.router)
	}
}

// SetInfo sets the description of the server, before Start.
func (s *Server) SetInfo(info ServerInfo) { s.info = info }

// Handler returns all routes of the public address as one handler, without a
// listener. Nothing can be registered afterwards.
func (s *Server) Handler() (fasthttp.RequestHandler, error) {
	s.pages.Do(func() {
		gatherer, _ := s.reg.(prometheus.Gatherer)
		s.router.addPages(s.info, gatherer)
	})
	return s.router.public.requestHandler()
}

// Call is inprocess.Call. Nothing can be registered afterwards.
func (s *Server) Call(method, path, key string, body []byte) (status int, answer []byte, err error) {
	return inprocess.Call(s.Handler, method, path, key, body)
}

// RoundTrip is inprocess.RoundTrip. Nothing can be registered afterwards.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	return inprocess.RoundTrip(s.Handler, req)
}

// Start listens and serves requests until Stop. It fails if an address is not
// available, or if a path is registered twice.
func (s *Server) Start(ctx context.Context) error {
	if _, err := s.Handler(); err != nil {
		return err
	}
	if _, err := s.router.admin.requestHandler(); err != nil {
		return err
	}
	s.router.shareWithConsole()
	ports := s.ports()
	for i, p := range ports {
		if err := p.listen(ctx); err != nil {
			for _, bound := range ports[:i] {
				_ = bound.ln.Close()
				bound.ln = nil
			}
			return err
		}
	}
	for _, p := range ports {
		p.serve()
	}
	return nil
}

// ports returns the ports that have an address.
func (s *Server) ports() []*port {
	all := []*port{s.router.public}
	if s.router.cfg.AdminAddress != "" {
		all = append(all, s.router.admin)
	}
	if s.router.console != nil {
		all = append(all, s.router.console)
	}
	return all
}

// Address returns the public address with the actual port; empty before Start.
func (s *Server) Address() string { return s.router.public.boundAddress() }

// AdminAddress returns the admin address with the actual port, or unix:PATH;
// empty before Start and without an admin address.
func (s *Server) AdminAddress() string { return s.router.admin.boundAddress() }

// URL returns the URL of the public address; empty before Start.
func (s *Server) URL() string { return s.router.public.url() }

// ConsoleURL returns the URL of the console; empty before Start.
func (s *Server) ConsoleURL() string {
	if s.router.console != nil {
		return s.router.console.url()
	}
	return s.router.public.url()
}

// AdminURL returns the URL of the admin address; empty before Start, without an
// admin address, and for a Unix socket.
func (s *Server) AdminURL() string { return s.router.admin.url() }

// Stop stops accepting connections and waits for the requests in flight. If ctx
// ends first, it cancels the contexts of the remaining requests, closes their
// connections and returns an error. Further calls, and calls without Start, do
// nothing.
func (s *Server) Stop(ctx context.Context) error {
	if s.Address() == "" {
		return nil
	}
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	s.router.readiness.SetStopping()
	retry.Sleep(ctx, s.router.cfg.StopDelay)
	ports := s.ports()
	for _, p := range ports {
		p.closeListener()
	}
	errs := make([]error, len(ports))
	var pending sync.WaitGroup
	for i, p := range ports {
		pending.Go(func() { errs[i] = p.shutdown(ctx) })
	}
	pending.Wait()
	s.cancelBase()
	broken := errors.Join(errs...)
	var err error
	if broken != nil {
		err = fmt.Errorf("stop: some requests did not end in time: %w", broken)
	}
	for i, p := range ports {
		err = errors.Join(err, p.closeAll(errs[i] != nil))
	}
	return err
}

// MaxConnections returns the maximum number of connections to the public address.
func (r *Router) MaxConnections() int { return r.public.most }
