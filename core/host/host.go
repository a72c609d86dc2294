// Package host runs plugins: it starts and supervises their processes, calls them
// and stops them.
//
// Each configured instance has a supervisor, which takes it through its states,
// restarts it with growing delays and quarantines it after too many exits. A bundled
// plugin runs from the server's own executable with other arguments, a third-party
// plugin from a file with a configured checksum. Between supervisor and callers is a
// gate, open while the process answers: a caller waits at the gate (Ready) instead of
// calling a dead process. A changed config starts the next generation beside the one
// that serves and switches over when it has proved healthy (upgrade).
//
// A plugin that is broken, missing, untrusted or misconfigured is a state of its
// instance. It never prevents the server from starting and never loses an event:
// what the plugin has not confirmed stays with the caller.
//
// The children of this package are below it and never import it: settings (types of
// the configuration), secret (references and redaction), process (start, limit, watch
// and stop a process), wire (protobuf to SDK types), schema (config schemas), metrics,
// lifecycle (states, failures, restart delays), status (what operators see),
// executable (finds the file to run) and conn (shared connections and sessions).
package host

import (
	"context"
	"fmt"
	"hash/maphash"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/cgroup"
	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/executable"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/schema"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/retry"
)

// Deps are the dependencies of a Host.
type Deps struct {
	// DataDir contains verified copies, schemas and sockets.
	DataDir string
	// Version is the server's version, which plugins receive.
	Version string
	// Bundled returns the command line of a bundled plugin, or nil for an unknown
	// name. The first element is the executable.
	Bundled func(name string) []string
	// Schema returns the JSON Schema of a bundled plugin's config, or nil. It
	// allows a check of the config before the plugin runs. It may be nil.
	Schema func(name, kind string) []byte
	// BundledNames are the names that Bundled knows, for messages.
	BundledNames []string
	// Log receives the messages of the host and of plugins. Nil disables logging.
	Log *zap.Logger
	// Metrics registers the metrics. It may be nil.
	Metrics prometheus.Registerer
	// Traces records calls of plugins as spans. Nil disables tracing.
	Traces trace.TracerProvider
}

// Host runs the configured plugin instances. Its methods are safe for concurrent
// use. It is the entry to all instances and hands each call to the one concerned;
// the fields are what instances share.
type Host struct {
	deps        Deps
	log         *zap.Logger
	metrics     *metrics.Metrics
	executables *executable.Finder
	schemas     *schema.Store
	pool        *conn.Pool
	logs        process.LogBuffers
	runDir      *process.RunDir
	seed        maphash.Seed
	background  retry.Service // housekeeping

	applying sync.Mutex // one Apply at a time

	mu        sync.Mutex // guards the rest; never held while waiting
	cfg       settings.Config
	phase     phase
	instances []*supervisor
	changed   chan struct{}
	onChange  []func(status.Status)
}

// phase is where the host is between New and Stop.
type phase int

const (
	phaseNew phase = iota
	phaseStarted
	phaseStopped
)

// New validates the configuration and returns a host. It starts no process.
func New(cfg settings.Config, deps Deps) (*Host, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = zap.NewNop()
	}
	if deps.Bundled == nil {
		deps.Bundled = func(string) []string { return nil }
	}
	m, err := metrics.New(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register plugin metrics: %w", err)
	}
	h := &Host{
		cfg: cfg, deps: deps, log: deps.Log.Named("host"), metrics: m, changed: make(chan struct{}), seed: maphash.MakeSeed(),
		executables: &executable.Finder{Copies: process.NewVerifiedCopies(deps.DataDir), Bundled: deps.Bundled, Names: deps.BundledNames},
		schemas:     &schema.Store{Dir: filepath.Join(deps.DataDir, "plugins", "schema"), Bundled: deps.Schema},
	}
	h.pool = conn.NewPool(conn.Deps{
		Settings: h.settings, Version: deps.Version, Log: h.log, PluginLog: deps.Log.Named("plugin"), LogBuffer: h.logs.Of,
		SocketDir: func(u *process.User) (string, error) { return h.runDir.PathFor(u) },
		Groups:    controlGroups,
		Tracing:   conn.NewTracing(deps.Traces), Metrics: m, Schemas: h.schemas,
	})
	for _, instance := range cfg.Instances {
		h.instances = append(h.instances, newSupervisor(h, instance))
	}
	return h, nil
}

// controlGroups makes the control groups of all plugin processes of this process.
var controlGroups = sync.OnceValue(cgroup.Find)

// Start starts every instance and returns without waiting for any. It fails only when
// the directory for sockets cannot be made.
func (h *Host) Start(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != phaseNew {
		return nil
	}
	runDir, err := process.NewRunDir(h.cfg.SocketDir, h.deps.DataDir)
	if err != nil {
		return fmt.Errorf("make a directory for plugin sockets: %w", err)
	}
	h.runDir, h.phase = runDir, phaseStarted
	for _, s := range h.instances {
		s.start()
	}
	h.background.Start()
	h.background.Go(func(drainCtx, _ context.Context) { h.runHousekeeping(drainCtx) })
	return nil
}

// killGrace is the least time that plugins have to close, also if the services in
// front of the host have used up the drain time.
const killGrace = 2 * time.Second

// Stop drains and stops all instances concurrently and waits until no plugin process
// is left. When ctx or its drain time (retry.WithDrain) ends first it kills them.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	running := h.phase == phaseStarted
	h.phase = phaseStopped
	instances := h.instances
	h.mu.Unlock()
	if !running {
		return nil
	}
	ctx, release := retry.Drain(ctx, killGrace)
	defer release()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = h.background.Stop(ctx) // always nil
	}()
	stopAll(ctx, instances)
	<-stopped
	return h.runDir.Remove()
}

// stopAll stops supervisors concurrently.
func stopAll(ctx context.Context, instances []*supervisor) {
	var wg sync.WaitGroup
	for _, s := range instances {
		wg.Go(func() { s.stop(ctx) })
	}
	wg.Wait()
}

// Apply replaces the configuration: it stops removed instances, starts new ones,
// reconfigures changed ones and leaves the others alone. An invalid configuration
// changes nothing.
func (h *Host) Apply(ctx context.Context, cfg settings.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	h.applying.Lock()
	defer h.applying.Unlock()
	added, kept, removed := h.replaceInstances(cfg)
	for s, instance := range kept {
		s.configure(instance)
	}
	stopAll(ctx, removed)
	for _, s := range removed {
		h.metrics.Forget(s.name)
		if h.find(s.name) == nil {
			h.logs.Remove(s.name)
		}
	}
	for _, s := range added {
		s.start()
	}
	return nil
}

// replaceInstances makes cfg the configuration. It returns the instances to start, to
// configure and to stop.
func (h *Host) replaceInstances(cfg settings.Config) (added []*supervisor, kept map[*supervisor]settings.Instance, removed []*supervisor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == phaseStopped {
		return nil, nil, nil
	}
	kept = map[*supervisor]settings.Instance{}
	old := map[string]*supervisor{}
	for _, s := range h.instances {
		old[s.name] = s
	}
	var all []*supervisor
	for _, instance := range cfg.Instances {
		s := old[instance.Name]
		if s != nil && s.target.settings().Kind == instance.Kind {
			delete(old, instance.Name)
			kept[s] = instance
		} else {
			s = newSupervisor(h, instance)
			if h.phase == phaseStarted {
				added = append(added, s)
			}
		}
		all = append(all, s)
	}
	for _, s := range h.instances {
		if old[s.name] == s {
			removed = append(removed, s)
		}
	}
	if !slices.Equal(h.instances, all) || !h.cfg.SameDeliveries(cfg) || cfg.DeliveriesHaveReferences() {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	h.cfg, h.instances = cfg, all
	return added, kept, removed
}

// settings returns the current configuration.
func (h *Host) settings() settings.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cfg
}

// supervisors returns the current instances.
func (h *Host) supervisors() []*supervisor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.instances
}

// find returns the supervisor of an instance, or nil.
func (h *Host) find(name string) *supervisor {
	for _, s := range h.supervisors() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// jitter returns the random part of a restart delay. It is equal for all instances of
// a plugin with the same number of restarts, so that instances that shared a process
// start the next one together.
func (h *Host) jitter(use string, tries int) func() float64 {
	return func() float64 {
		sum := maphash.String(h.seed, use+" "+strconv.Itoa(tries))
		return float64(sum>>11) / (1 << 53)
	}
}
