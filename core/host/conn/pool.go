package conn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/cgroup"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/schema"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

// Deps are the dependencies of a Pool.
type Deps struct {
	// Settings returns the current settings of all plugins.
	Settings func() settings.Config
	// Version is the version of the server, which plugins receive.
	Version string
	// Log receives messages of the host, PluginLog the lines of plugins.
	Log       *zap.Logger
	PluginLog *zap.Logger
	// LogBuffer returns the log buffer of an instance.
	LogBuffer func(instance string) *process.LogBuffer
	// SocketDir returns the directory for sockets that a user can reach; nil is the
	// user of the server.
	SocketDir func(*process.User) (string, error)
	// Groups returns what makes control groups of processes, or nil.
	Groups  func() *cgroup.Parent
	Tracing *Tracing
	Metrics *metrics.Metrics
	Schemas *schema.Store
}

// Pool shares plugin processes. Instances whose processes would be identical use one
// process, when the plugin supports several instances. Two generations of one
// instance never share a process, so that the next generation starts beside the
// one that serves. Its methods are safe for concurrent use.
type Pool struct {
	deps Deps

	mu     sync.Mutex
	shared map[string][]*sharedProcess
}

// NewPool returns an empty pool.
func NewPool(deps Deps) *Pool { return &Pool{deps: deps, shared: map[string][]*sharedProcess{}} }

// sharedProcess is a process with its instances, from before its start until the
// last instance has left.
type sharedProcess struct {
	pool   *Pool
	key    string
	owner  string // the instance that started it
	ctx    context.Context
	cancel context.CancelFunc
	logs   *process.LogPipe

	started chan struct{} // closed when conn or err is set
	conn    *Conn
	err     error

	closed    bool            // accepts no new instance
	instances map[string]bool // false: it has left and must not return
	active    int             // instances that have not left
}

// processKey identifies identical processes: same command line, environment, limits
// and network.
func processKey(p Plan) string {
	env := slices.Sorted(slices.Values(p.Config.Env))
	name := ""
	if p.Settings.Isolated {
		name = p.Settings.Name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %+v %q", p.Settings.Kind, p.Argv, env, name, p.Settings.Limits, p.Settings.Network))
	return hex.EncodeToString(sum[:])
}

// Plan is one generation of an instance, ready to start.
type Plan struct {
	Settings   settings.Instance
	Generation uint64
	// Argv is the command line, or the connection key of an attached process.
	Argv   []string
	Config *secret.Config
}

// Open starts a process for the plan, or joins an identical one, and returns a
// session in it. The plugin is not configured yet. The caller ends the session. The
// error is a *lifecycle.Failure.
func (p *Pool) Open(ctx context.Context, plan Plan) (*Session, error) {
	shared, err := p.acquire(ctx, plan)
	if err != nil {
		return nil, err
	}
	return &Session{
		Conn: shared.conn, Settings: plan.Settings, Executable: plan.Argv[0], Generation: plan.Generation, Digest: plan.Config.Digest(plan.Argv),
		Timeouts: plan.Settings.EffectiveTimeouts(), Redactor: plan.Config.Redactor,
		shared: shared, config: plan.Config, metrics: p.deps.Metrics, tracing: p.deps.Tracing,
	}, nil
}

// acquire returns a process that has answered Info. The caller leaves it.
func (p *Pool) acquire(ctx context.Context, plan Plan) (*sharedProcess, error) {
	key, name, limits := processKey(plan), plan.Settings.Name, plan.Settings.EffectiveTimeouts()
	for {
		s := p.join(key, plan)
		select {
		case <-s.started:
		case <-ctx.Done():
			s.leave(context.WithoutCancel(ctx), name, limits, true)
			return nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "start", Message: "stopped while starting"}
		}
		if s.err != nil {
			s.leave(ctx, name, limits, true)
			return nil, s.err
		}
		if s.owner == name || s.conn.Info.GetMultiInstance() {
			return s, nil
		}
		s.leave(ctx, name, limits, true)
		key += " " + name
	}
}

// join adds the instance to a process that accepts it, or starts a new one.
func (p *Pool) join(key string, plan Plan) *sharedProcess {
	c := plan.Settings
	p.mu.Lock()
	defer p.mu.Unlock()
	var s *sharedProcess
	for _, running := range p.shared[key] {
		if _, taken := running.instances[c.Name]; !taken && !running.closed {
			s = running
			break
		}
	}
	if s == nil {
		s = &sharedProcess{pool: p, key: key, owner: c.Name, started: make(chan struct{}), instances: map[string]bool{}, logs: p.logPipe(c)}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		p.shared[key] = append(p.shared[key], s)
		go s.run(plan)
	}
	s.instances[c.Name] = true
	s.active++
	s.logs.AddInstance(c.Name, plan.Config.Redactor, p.deps.LogBuffer(c.Name))
	return s
}

// logPipe returns the log pipe of a new process.
func (p *Pool) logPipe(c settings.Instance) *process.LogPipe {
	log := p.deps.PluginLog.With(zap.String("plugin", c.Use))
	return process.NewLogPipe(log, p.deps.Settings().LogLinesPerSecond, func(instance string, n int) {
		if instance == "" {
			instance = c.Name
		}
		p.deps.Metrics.DroppedLines.WithLabelValues(instance).Add(float64(n))
	})
}

// run starts the process and removes it from the pool after its exit.
func (s *sharedProcess) run(plan Plan) {
	conn, err := s.start(plan)
	s.pool.mu.Lock()
	s.conn, s.err = conn, err
	s.pool.mu.Unlock()
	if err != nil {
		s.close()
	}
	close(s.started)
	if err == nil {
		<-conn.exited
		s.close()
	}
}

// start connects to the process and loads its description.
func (s *sharedProcess) start(plan Plan) (*Conn, error) {
	c, limits := plan.Settings, plan.Settings.EffectiveTimeouts()
	conn, err := s.pool.connect(s.ctx, plan, s.logs)
	if err != nil {
		return nil, err
	}
	if err := conn.loadInfo(s.ctx, limits.Start, s.pool.deps.Version); err != nil {
		failure := withAddress(c, conn.callFailure(s.ctx, "info", err, plan.Config.Redactor))
		conn.shutDown(s.ctx, limits, false)
		return nil, failure
	}
	s.pool.loadSchema(s.ctx, conn, plan)
	return conn, nil
}

// connect launches the process of a plan or attaches to it.
func (p *Pool) connect(ctx context.Context, plan Plan, logs *process.LogPipe) (*Conn, error) {
	options := p.deps.Tracing.dialOptions()
	if plan.Settings.Attached() {
		return attach(ctx, plan.Settings, options)
	}
	limits := plan.Settings.Limits.Or(p.deps.Settings().Limits)
	user, err := process.FindUser(limits.User)
	if err != nil {
		return nil, &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "user", Message: err.Error()}
	}
	dir, err := p.deps.SocketDir(user)
	if err != nil {
		return nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "socket_dir", Message: err.Error()}
	}
	launched, err := process.Launch(ctx, process.Options{
		Argv: plan.Argv, Env: p.environment(plan, limits), Limits: limits, Network: plan.Settings.Network, User: user,
		StartTimeout: plan.Settings.EffectiveTimeouts().Start, SocketDir: dir, Groups: p.deps.Groups(), DialOptions: options, Logs: logs,
	})
	if err != nil {
		return nil, launchFailure(err)
	}
	conn := newConn(launched.Conn, launched.Process)
	conn.release = launched.Release
	return conn, nil
}

// environment returns the environment of a plugin: the host's variables and those of
// the settings.
func (p *Pool) environment(plan Plan, limits settings.Limits) []string {
	env := []string{sdk.WatchKey + "=stdin", sdk.LogLevelKey + "=" + p.deps.Settings().LogLevel}
	if limit := limits.MemoryBytes; limit > 0 { // Go collects garbage before the limit; other runtimes ignore it
		env = append(env, "GOMEMLIMIT="+strconv.Itoa(limit/10*9))
	}
	return append(env, plan.Config.Env...)
}

// loadSchema requests and stores the plugin's config schema. An invalid one is a
// contract violation, and the plugin checks its config itself.
func (p *Pool) loadSchema(ctx context.Context, conn *Conn, plan Plan) {
	c := plan.Settings
	source, err := conn.loadSchema(ctx, wire.Kinds[c.Kind], c.EffectiveTimeouts().Start)
	if err != nil {
		p.deps.Metrics.ContractViolations.WithLabelValues(c.Name, "bad_schema").Inc()
		p.deps.Log.Warn("plugin config schema invalid", zap.String("instance", c.Name), zap.String("error", text.Ellipsis(err.Error(), 300)))
		return
	}
	p.deps.Schemas.Keep(c, plan.Argv[0], source)
}

// close removes the process from the pool, so that no instance joins it.
func (s *sharedProcess) close() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.closeLocked()
}

func (s *sharedProcess) closeLocked() {
	s.closed = true
	others := slices.DeleteFunc(s.pool.shared[s.key], func(o *sharedProcess) bool { return o == s })
	if len(others) == 0 {
		delete(s.pool.shared, s.key)
		return
	}
	s.pool.shared[s.key] = others
}

// kill terminates the process for all its instances.
func (s *sharedProcess) kill(ctx context.Context, limits settings.Timeouts) {
	s.close()
	s.conn.terminate(ctx, limits.Stop)
}

// leave removes an instance. The last one shuts the process down; leave then returns
// without a process. clean means that the plugin has closed the instance.
func (s *sharedProcess) leave(ctx context.Context, name string, limits settings.Timeouts, clean bool) {
	s.pool.mu.Lock()
	s.instances[name] = false
	if clean {
		delete(s.instances, name)
		s.logs.RemoveInstance(name)
	}
	s.active--
	last := s.active == 0
	if last {
		s.closeLocked()
	}
	s.pool.mu.Unlock()
	if !last {
		return
	}
	s.cancel()
	<-s.started
	if s.conn != nil {
		s.conn.shutDown(ctx, limits, clean)
	}
}

// instanceCount returns the number of instances in the process.
func (s *sharedProcess) instanceCount() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.active
}
