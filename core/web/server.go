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

// Server listens and serves what the rooms have registered.
type Server struct {
	gate *Router
	app  *fiber.App
	log  *zap.Logger
	reg  prometheus.Registerer

	built   sync.Once
	handler fasthttp.RequestHandler
	fault   error
	about   ServerInfo

	ln      *listener.Listener
	served  chan error
	giveUp  context.CancelFunc
	ended   sync.Once
	stopErr error
}

// New returns a server that serves nothing yet and touches nothing. reg may
// be nil for no metrics; when it is also a prometheus.Gatherer, and the config
// does not say otherwise, GET /metrics shows what it has gathered.
func New(cfg Config, who Auth, log *zap.Logger, reg prometheus.Registerer) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	trusted, err := parseProxies(cfg.TrustedProxies)
	if err != nil {
		return nil, err
	}
	log = log.Named("web")
	base, giveUp := context.WithCancel(context.Background())
	g := &Router{
		cfg: cfg, auth: who, log: log, proxies: trusted, base: base,
		public: newThrottle(cfg.PublicRate), manage: newThrottle(cfg.ManageRate),
		meter: newMeter(reg), origins: map[string]bool{}, faces: map[string]bool{},
	}
	for _, o := range cfg.ManageOrigins {
		g.origins[o] = true
	}
	g.none = &route{gate: g, pattern: noRoute, method: "(any)"}
	g.nonePublic = &route{gate: g, pattern: noRoute, method: "(any)", public: true}
	g.none.prepare()
	g.nonePublic.prepare()
	s := &Server{gate: g, log: log, reg: reg, giveUp: giveUp, served: make(chan error, 1)}
	s.app = fiber.New(s.settings())
	g.app = s.app
	return s, nil
}

func (s *Server) settings() fiber.Config {
	cfg := s.gate.cfg
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
		ErrorHandler:                 s.gate.missed,
	}
}

// Router is where to register, before Start.
func (s *Server) Router() *Router { return s.gate }

// MapError sets f, which may give a kind to an error that has none before the caller
// is answered: the house knows failures of its stores that the gate does not.
// It must be called before Start; f must be safe for parallel use.
func (s *Server) MapError(f func(error) error) { s.gate.mend = f }

// Mount lets rooms register what they serve, before Start.
func (s *Server) Mount(rooms ...Routes) {
	for _, r := range rooms {
		r.Routes(s.gate)
	}
}

// SetInfo sets what the server says of itself, before Start.
func (s *Server) SetInfo(a ServerInfo) { s.about = a }

// Handler returns everything that is registered as one handler, without a
// listener. Nothing can be registered afterwards.
func (s *Server) Handler() (fasthttp.RequestHandler, error) {
	s.built.Do(func() {
		gatherer, _ := s.reg.(prometheus.Gatherer)
		s.gate.pages(s.about, gatherer)
		s.fault = s.gate.install(s.app)
		s.handler = s.gate.outermost(s.app.Handler())
	})
	return s.handler, s.fault
}

// Start listens and returns; requests are served from then on. It fails when
// the address cannot be had, or when two rooms want the same path.
func (s *Server) Start(ctx context.Context) error {
	h, err := s.Handler()
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.gate.cfg.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.gate.cfg.Address, err)
	}
	s.ln = listener.New(ln)
	s.gate.turn.started(ln.Addr().String())
	hs := s.app.Server()
	hs.Handler, hs.ErrorHandler = h, s.gate.broken
	hs.CloseOnShutdown = true
	hs.Logger = quietLog{s.log}
	go func() { s.served <- hs.Serve(s.ln) }()
	s.log.Info("listening", zap.String("address", s.Address()))
	return nil
}

// Address is where the server listens, with the real port; empty before Start.
func (s *Server) Address() string { return s.gate.turn.address() }

// Stop takes no more connections, waits for the requests in hand, and
// returns. When ctx ends first it cancels the contexts of the requests that
// are left, closes their connections, and returns an error that says so.
//
// Stopping again, or what was never started, does nothing.
func (s *Server) Stop(ctx context.Context) error {
	if s.ln == nil {
		return nil
	}
	s.ended.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	s.gate.turn.stop()
	wait(ctx, s.gate.cfg.StopDelay)
	_ = s.ln.Close()
	s.ln.CloseUnused()
	err := s.app.Server().ShutdownWithContext(ctx)
	s.giveUp()
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

// turn is where the life of the server stands.
type turn struct {
	at     atomic.Pointer[string]
	ending atomic.Bool
}

func (t *turn) started(address string) { t.at.Store(&address) }
func (t *turn) stop()                  { t.ending.Store(true) }
func (t *turn) stopping() bool         { return t.ending.Load() }

func (t *turn) address() string {
	if a := t.at.Load(); a != nil {
		return *a
	}
	return ""
}

// quietLog takes what the HTTP library has to say about single connections.
type quietLog struct{ log *zap.Logger }

func (q quietLog) Printf(format string, args ...any) {
	if line := q.log.Check(zap.DebugLevel, "connection"); line != nil {
		line.Write(zap.String("said", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}
