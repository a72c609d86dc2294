// Package host starts plugins, keeps them running, asks them things and stops
// them.
//
// Each configured instance is a process of its own: a bundled plugin is the
// server's own executable with other arguments, a third party's is a file whose
// checksum the operator has pinned. A supervisor for each instance takes it
// through its states, restarts it with growing delays and gives up on it for a
// while when it dies too often. Between the supervisor and the callers stands a
// gate: it is open while the process answers, so a caller waits at the gate
// (Ready) instead of calling into a void.
//
// A plugin that is broken, missing, not trusted or misconfigured is a state that
// an operator sees. It is never a server that does not start, and it never
// costs an event: what the plugin has not confirmed stays with the caller.
package host

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Deps is what a host needs from its surroundings.
type Deps struct {
	// DataDir is where verified copies and sockets live.
	DataDir string
	// Version is the server's version, told to plugins.
	Version string
	// Bundled returns the command line that runs the bundled plugin of that
	// name, or nil when there is none. The first word is the executable.
	Bundled func(name string) []string
	// Schema returns the JSON Schema of a bundled plugin's config, or nil; it
	// lets a config be checked before anything runs. It may be nil itself.
	Schema func(name, kind string) []byte
	// BundledNames lists the names Bundled knows, for messages.
	BundledNames []string
	// Log receives the host's own lines and those of the plugins.
	Log *zap.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Traces takes the spans of calls of plugins; nil is no tracing.
	Traces trace.TracerProvider
}

// Host runs the configured plugin instances. Its methods may be called from
// many goroutines.
type Host struct {
	deps    Deps
	log     *zap.Logger
	metrics *metrics
	traces  *tracing
	trust   *trustStore
	pool    *pool
	runs    *runDir
	seed    maphash.Seed

	applying sync.Mutex // one Apply at a time
	tending  sync.WaitGroup
	rest     context.CancelFunc // ends the tending

	mu        sync.Mutex // never held while something is waited for
	cfg       settings.Config
	started   bool
	stopped   bool
	instances []*supervisor
	changed   chan struct{}
	onChange  []func(InstanceStatus)
	rings     map[string]*ring
}

// New checks the config and prepares a host; it starts nothing.
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
	m, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register plugin metrics: %w", err)
	}
	h := &Host{
		cfg: cfg, deps: deps, log: deps.Log.Named("host"), metrics: m,
		trust: newTrustStore(deps.DataDir), changed: make(chan struct{}),
		seed: maphash.MakeSeed(), rings: map[string]*ring{},
	}
	h.traces, h.pool = newTracing(deps.Traces), newPool(h)
	for _, instance := range cfg.Instances {
		h.instances = append(h.instances, newSupervisor(h, instance))
	}
	return h, nil
}

// Start begins to supervise every instance and returns at once, without waiting
// for any of them. It fails only when the host has no place for its sockets.
func (h *Host) Start(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started {
		return nil
	}
	runs, err := newRunDir(h.cfg.SocketDir, h.deps.DataDir)
	if err != nil {
		return fmt.Errorf("make a directory for plugin sockets: %w", err)
	}
	h.runs, h.started = runs, true
	for _, s := range h.instances {
		s.start()
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.rest = cancel
	h.tending.Go(func() { h.tend(ctx) })
	return nil
}

// Stop drains and stops every instance, all at once, and waits until no plugin
// process is left. When ctx ends first the processes are killed.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	running := h.started && !h.stopped
	h.stopped = true
	instances := h.instances
	h.mu.Unlock()
	if !running {
		return nil
	}
	h.rest()
	stopAll(ctx, instances)
	h.tending.Wait()
	return h.runs.remove()
}

// stopAll stops the given supervisors side by side.
func stopAll(ctx context.Context, instances []*supervisor) {
	var wg sync.WaitGroup
	for _, s := range instances {
		wg.Go(func() { s.stop(ctx) })
	}
	wg.Wait()
}

// Apply makes cfg the config: instances that are gone are stopped, those that
// are new are started, those whose config differs get the new one, and the
// others are left alone. A config that is not valid changes nothing.
func (h *Host) Apply(ctx context.Context, cfg settings.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	h.applying.Lock()
	defer h.applying.Unlock()
	fresh, kept, gone := h.adopt(cfg)
	for s, instance := range kept {
		s.configure(instance)
	}
	stopAll(ctx, gone)
	for _, s := range gone {
		h.metrics.forget(s.name)
		h.forgetLines(s.name)
	}
	for _, s := range fresh {
		s.start()
	}
	return nil
}

// adopt makes cfg the config and returns what is to be started, configured and
// stopped.
func (h *Host) adopt(cfg settings.Config) (fresh []*supervisor, known map[*supervisor]settings.Instance, gone []*supervisor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, nil, nil
	}
	known = map[*supervisor]settings.Instance{}
	old := map[string]*supervisor{}
	for _, s := range h.instances {
		old[s.name] = s
	}
	var kept []*supervisor
	for _, instance := range cfg.Instances {
		s := old[instance.Name]
		if s != nil && s.kind() == instance.Kind {
			delete(old, instance.Name)
			known[s] = instance
		} else {
			s = newSupervisor(h, instance)
			if h.started {
				fresh = append(fresh, s)
			}
		}
		kept = append(kept, s)
	}
	for _, s := range h.instances {
		if old[s.name] == s {
			gone = append(gone, s)
		}
	}
	if !slices.Equal(h.instances, kept) || !sameDeliveries(h.cfg, cfg) {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	h.cfg, h.instances = cfg, kept
	return fresh, known, gone
}

// config is the config of the moment.
func (h *Host) config() settings.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cfg
}

// Release lets an instance that is quarantined, misconfigured, untrusted or
// incompatible try again. It reports whether there is one of that name.
func (h *Host) Release(name string) bool {
	s := h.find(name)
	if s != nil {
		s.release()
	}
	return s != nil
}

// find returns the supervisor of an instance, or nil.
func (h *Host) find(name string) *supervisor {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.instances {
		if s.name == name {
			return s
		}
	}
	return nil
}

// jitter is the random part of a delay. It is the same for all instances of a
// plugin that have died equally often, so that those who shared a process start
// the next one together.
func (h *Host) jitter(use string, tries int) func() float64 {
	return func() float64 {
		sum := maphash.String(h.seed, use+" "+strconv.Itoa(tries))
		return float64(sum>>11) / (1 << 53)
	}
}

// Sinks returns the configured sinks, in the order of the config, whatever
// state they are in.
func (h *Host) Sinks() []*SinkInstance {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*SinkInstance
	for _, s := range h.instances {
		if s.sink != nil {
			out = append(out, s.sink)
		}
	}
	return out
}

// Changed returns a channel that is closed when the set of instances changes,
// or what one of them is to be sent.
func (h *Host) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// OnChange registers a function that is told of every change of state, in
// order for each instance. It must not block. Register before Start.
func (h *Host) OnChange(fn func(InstanceStatus)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onChange = append(h.onChange, fn)
}

// Status returns the state of every instance, in the order of the config.
func (h *Host) Status() []InstanceStatus {
	h.mu.Lock()
	instances := h.instances
	h.mu.Unlock()
	out := make([]InstanceStatus, len(instances))
	for i, s := range instances {
		out[i] = s.Status()
	}
	return out
}

// Ready returns nil when every instance that is required can be used, and
// otherwise an error that names those that cannot.
func (h *Host) Ready() error {
	var missing []string
	for _, s := range h.Status() {
		if s.Required && !s.State.Usable() {
			missing = append(missing, fmt.Sprintf("%s is %s", s.Name, s.State))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("required plugins are not ready: %v", missing)
	}
	return nil
}
