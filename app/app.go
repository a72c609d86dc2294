// Package app assembles the server: one configuration for all modules
// (config.go), the list of modules (app.go), and the bindings of one module's
// interfaces to another module's types (bindings.go).
//
// It adds no behaviour beyond the order of starting and stopping. Start first
// takes what another server may hold: it binds the address, then locks the
// journal, and only then opens and migrates the database. So a start that fails
// has changed nothing. Requests are accepted last, when everything behind them
// is ready; until then they wait in the queue of the system. Stop runs in the
// reverse order: requests finish, the worker finishes its batch, plugins drain,
// the database and the journal close.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/api"
	"github.com/guidonhq/guidon/app/greeting"
	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/admin"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/clients"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/console"
	"github.com/guidonhq/guidon/core/db"
	_ "github.com/guidonhq/guidon/core/db/sqlite" // opens the files of the database and of the journal
	"github.com/guidonhq/guidon/core/definitionfile"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/events/clickhouse"
	"github.com/guidonhq/guidon/core/events/eventapi"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/pluginconfig"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/roles"
	"github.com/guidonhq/guidon/core/seed"
	"github.com/guidonhq/guidon/core/serverhealth"
	"github.com/guidonhq/guidon/core/servermetrics"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/signin"
	"github.com/guidonhq/guidon/core/standby"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/listener"
	"github.com/guidonhq/guidon/sdk"
)

// startTimeout bounds the start of the modules. A stop has three parts, each with its own bound:
// requests, then the services that drain together, then the journal and the
// database, which close. The bound of the whole is for what should not happen.
const (
	startTimeout   = time.Minute
	requestTimeout = 10 * time.Second
	drainTimeout   = 10 * time.Second
	stopTimeout    = 40 * time.Second
)

// Options holds the properties of the process that the configuration cannot hold.
type Options struct {
	// Version is shown in answers and logs and passed to plugins.
	Version string
	// Log receives the server's log; nil makes a logger from the configuration.
	Log *zap.Logger
	// LogLevel is the level of Log, which follows log.level. Nil: that of a Log made from the configuration.
	LogLevel *zap.AtomicLevel
	// Out is where the keys of a first run are printed; nil prints nothing.
	Out io.Writer
	// Bundled returns the command line that runs a bundled plugin, or nil.
	Bundled func(name string) []string
	// BundledNames lists the names that Bundled accepts.
	BundledNames []string
	// Schema returns the JSON Schema of a bundled plugin's config, or nil; it may be nil itself.
	Schema func(name, kind string) []byte
	// Operators returns the operators of a bundled matcher without starting it; it may be nil itself.
	Operators func(name string) []sdk.Operator
	// ConfigFile is the path of the configuration, which is read again when the file changes. Empty means no file.
	ConfigFile string
	// Environ returns the environment to read it with; nil means os.Environ.
	Environ func() []string
	// Hangup triggers a reload of the configuration at each signal; it may be nil.
	Hangup <-chan os.Signal
	// Metrics registers the metrics. One that is also a prometheus.Gatherer is shown at /metrics. Nil makes a registry.
	Metrics prometheus.Registerer
	// Seed is the content of a fresh server, made before it listens; nil makes none. A
	// database that has projects stays as it is.
	Seed *definitionfile.File
	// Ready is called once the server listens; an error stops it. It may be nil.
	Ready func(*Server) error
}

// Server is a running server.
type Server struct {
	// URL is its public address, without a slash at the end.
	URL string
	// AdminURL is the address for operators, without a slash at the end. It is
	// empty without http.admin_address, and for a Unix socket.
	AdminURL string
	// First holds the credentials that a first run created; nil when the database
	// already held a project.
	First *auth.Credentials
	// Seeded has what Options.Seed made; nil without it, or if the database had a
	// project.
	Seeded *seed.Result
	// DB is the open database.
	DB *db.DB
	// Routes lists every registered route.
	Routes []web.Route

	accounts   *auth.Service
	member     cluster.Member
	links      greeting.Links
	clustered  bool
	silent     bool          // prints no greeting
	late       chan struct{} // closed when the first accounts exist
	background retry.Service
	app        *fx.App
	log        *zap.Logger
	stopDelay  time.Duration
	dataDir    string
	seedFile   *definitionfile.File
	seedDone   func() error // notes that everything of the seed file is made
}

// Start starts every module and returns when the server listens. When it fails it stops the modules
// it has started. The end of ctx ends a start that does not listen yet; afterwards the server is
// started, and only Stop stops it.
func Start(ctx context.Context, cfg Config, opts Options) (*Server, error) {
	opts.useLog(cfg)
	// The modules are created without a time limit: they may have to wait for the migration
	// of the database, which takes as long as it needs.
	making, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	listen := listenGuard(context.AfterFunc(ctx, cancel))
	if err := backup.CheckComplete(cfg.DataDir); err != nil {
		return nil, err
	}
	bound, err := web.Bind(making, cfg.HTTP)
	if err != nil {
		return nil, err
	}
	s := &Server{log: opts.Log, stopDelay: cfg.HTTP.StopDelay, clustered: cfg.Cluster.Enabled, late: make(chan struct{}), dataDir: cfg.DataDir,
		seedFile: opts.Seed, seedDone: func() error { return nil }}
	var server *web.Server
	opened := &opened{}
	opened.add(bound.Close)
	s.app = fx.New(
		fx.Supply(bound, opened, listen, requestlog.Starting{Context: making}, seeding(func(ctx context.Context, w *web.Server) error { return s.seed(ctx, opts.Seed, w) })), foundation,
		modules(cfg, opts),
		fx.Populate(&server, &s.DB, &s.accounts, &s.member),
		fx.Invoke(func(on console.Served, w *web.Server) {
			s.links = greeting.Links{DB: s.DB, Console: bool(on), Lifetime: cfg.SignIn.LinkLifetime, URL: w.ConsoleURL}
		}),
		fx.Invoke(s.bootstrap),
		fx.Invoke(mount, serve),
	)
	if err := s.app.Err(); err != nil {
		opened.close()
		return nil, db.ExplainStart(rootCause(err))
	}

	start, release := context.WithTimeout(making, startTimeout)
	defer release()
	if err := s.app.Start(start); err != nil {
		_ = bound.Close()
		return nil, db.ExplainStart(rootCause(err))
	}
	s.URL, s.AdminURL = server.URL(), server.AdminURL()
	s.Routes = server.Router().Registered()
	if opts.Seed == nil {
		s.announce(opts.Out)
	}
	return s, nil
}

// Stop stops every module in the reverse order of starting: requests have ten seconds after
// http.stop_delay, everything that drains has ten seconds together, and then the journal and the
// database close. A hung plugin is killed and is no error.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout+s.stopDelay)
	defer cancel()
	if s.clustered { // others take over before requests end, in a drain time of its own
		_ = s.member.Drain(retry.WithDrain(ctx, drainTimeout))
	}
	return rootCause(s.app.Stop(retry.WithDrain(ctx, drainTimeout)))
}

// Serve starts the server and serves until ctx ends; then it stops.
func Serve(ctx context.Context, cfg Config, opts Options) error {
	begin := time.Now()
	if opts.useLog(cfg) {
		defer func() { _ = opts.Log.Sync() }()
	}
	if err := process.HideMemory(); err != nil {
		opts.Log.Warn("server memory readable by plugins", zap.Error(err))
	}
	if os.Geteuid() == 0 && slices.ContainsFunc(cfg.Plugins.Instances, settings.Instance.External) {
		opts.Log.Warn("server runs as root: so do its plugins, which can read everything on this machine")
	}
	s, err := Start(ctx, cfg, opts)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		opts.Log.Info("stopped during the start")
		return nil
	}
	if err != nil {
		return err
	}
	s.log.Info("serving", zap.String("url", s.URL), zap.String("version", opts.Version), zap.Stringer("database", s.DB),
		zap.Duration("started_in", time.Since(begin).Round(time.Millisecond)))
	if opts.Ready != nil {
		if err := opts.Ready(s); err != nil {
			return errors.Join(err, s.Stop())
		}
	}
	<-ctx.Done()
	s.log.Info("stopping")
	if err := s.Stop(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

// modules lists every module with its configuration.
func modules(cfg Config, opts Options) fx.Option {
	node, has := clusterNode(&cfg, opts)
	jobs := []string{roles.Process}
	return fx.Options(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.StopTimeout(stopTimeout+cfg.HTTP.StopDelay), fx.StartTimeout(startTimeout),
		liveSettings(cfg, opts),
		fx.Supply(opts.Log, cfg.HTTP, cfg.Database, cfg.Auth, cfg.SignIn, cfg.Email, cfg.Journal.Config, cfg.Persons, cfg.Events, cfg.Definitions, cfg.Flags, cfg.Changes, cfg.Actions, cfg.Notifications, cfg.Operators, cfg.Ingestion, cfg.GeoIP, cfg.Plugins, cfg.Standby, cfg.Cluster,
			db.DataDir(cfg.DataDir), journal.Dir(cfg.DataDir), clients.Directory(cfg.Clients.Directory(cfg.DataDir))),
		fx.Provide(func(l *requestlog.Log) cluster.Info {
			node.LogID, node.ReplaceLog = l.ID(), cfg.Journal.AcceptOtherLog
			return node
		}),
		fx.Supply(cfg.Backup, servermetrics.Info{Version: opts.Version, DataDir: cfg.DataDir}),
		fx.Provide(func(d *db.DB, _ *requestlog.Files, audit *activity.Audit) backup.Source {
			src := backupSource(cfg, d, opts.ConfigFile, opts.Version)
			src.Serving, src.Made = true, loggedBackups(audit, cfg.Backup.To)
			return src
		}),
		fx.Provide(func() prometheus.Registerer { return registry(opts.Metrics) }),
		fx.Supply(describer(opts.Operators)),
		fx.Provide(func(lc fx.Lifecycle, log *zap.Logger, reg prometheus.Registerer) (*tracing.Tracing, error) {
			return newTracing(lc, cfg.Traces, opts.Version, log, reg)
		}),
		fx.Provide(func(t *tracing.Tracing, log *zap.Logger, reg prometheus.Registerer) host.Deps {
			return host.Deps{DataDir: cfg.DataDir, Version: opts.Version, Bundled: opts.Bundled, BundledNames: opts.BundledNames, Schema: opts.Schema, Log: log, Metrics: reg, Traces: t.Provider()}
		}),
		fx.Provide(func(lc fx.Lifecycle, v *live.Value[Config], h *pluginconfig.Instances, audit *activity.Audit, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
			return provideReloader(lc, v, opts, h, audit, log, reg)
		}),
		fx.Supply(web.ServerInfo{Version: opts.Version, OpenAPI: api.OpenAPI}),
		local(db.Module, auth.Module, email.Module, signin.Module, requestlog.Module(cfg.Journal), flags.Module), has.Only(jobs, flags.Schedule), standby.Module, web.Module,
		persons.Module, has.Only(roles.Workers(), clickhouse.Module), eventapi.Module, definitions.Module, host.Module, pluginconfig.Module(cfg.Flags.EncryptionKey), has.Only(jobs, ingestion.Module), admin.Module, clients.Module, console.Module(cfg.Console.Enabled && has.Has(roles.Manage)), backup.Module, servermetrics.Module, serverhealth.Module, cluster.Module,
		fx.Supply(has, admin.Public(cfg.Console.Enabled && has.Has(roles.Manage))), bindings(has), fx.Invoke(countQuota),
	)
}

// registry returns r, or a new registry for nil, with the metrics of the process.
func registry(r prometheus.Registerer) prometheus.Registerer {
	r = serverhealth.Watch(r)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// routes collects every module that serves paths.
type routes struct {
	fx.In

	All []web.Routes `group:"routes"`
}

// listenGuard is called before the server listens. From then on the end of the context
// of Start has no effect, because requests may be under way. It returns false if that
// context has ended before.
type listenGuard func() bool

// serve starts the listener last, when everything behind it is ready. Requests that do not end in
// time are cancelled; the stop goes on.
func serve(lc fx.Lifecycle, s *web.Server, bound listener.Bound, cfg *live.Value[web.Config], listen listenGuard, fill seeding, log *zap.Logger) {
	s.UseBound(bound)
	start := func(ctx context.Context) error {
		if !listen() {
			return context.Canceled
		}
		if err := fill(ctx, s); err != nil {
			return err
		}
		return s.Start(ctx)
	}
	lc.Append(fx.StartStopHook(start, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cfg.Load().StopDelay+requestTimeout)
		defer cancel()
		err := s.Stop(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			log.Warn("requests cancelled by the stop", zap.Error(err))
			return nil
		}
		return err
	}))
}

// mount registers the routes of all features.
func mount(s *web.Server, has roles.Set, cfg *live.Value[web.Config], audit *activity.Audit, counter *activity.Counter, browsers *sessions.Service, about web.ServerInfo, spans *tracing.Tracing, r routes) {
	s.MapError(has.MapError(db.Away))
	if !has.All() {
		s.Restrict(web.Parts{Refuse: has.Refuse, Watches: has.Watches})
	}
	s.Follow(cfg)
	s.OnUnlogged(audit.AddUnlogged)
	s.OnFailedKey(counter.AddKey)
	s.UseSessions(browsers)
	s.Mount(r.All...)
	s.SetInfo(about)
	s.Trace(spans)
}

// rootCause strips the names of constructors from an error of fx.
func rootCause(err error) error {
	if err == nil {
		return nil
	}
	return dig.RootCause(err)
}
