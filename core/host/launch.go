package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// callGrace is how long a process that broke a call gets to say why it ends.
const callGrace = 100 * time.Millisecond

// failure is why an instance cannot be used, and what follows from it.
type failure struct {
	state       State  // StateBackoff, or a state that waits for the operator
	reason      string // snake_case
	message     string
	diagnostics []Diagnostic
	exit        *ExitStatus // of a process that did not come up
}

func (f *failure) Error() string { return f.message }

// command returns the command line of an instance, its executable verified.
func (h *Host) command(c settings.Instance) ([]string, error) {
	if c.Attached() {
		return c.ConnectionKey(), nil
	}
	if c.External() {
		path, err := h.executable(c)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &failure{state: StateMisconfigured, reason: "no_such_file", message: fmt.Sprintf("there is no file %s", c.Use)}
		case errors.Is(err, errUntrusted):
			return nil, &failure{state: StateUntrusted, reason: "checksum", message: err.Error()}
		case err != nil:
			return nil, &failure{state: StateBackoff, reason: "verify", message: err.Error()}
		}
		return []string{path}, nil
	}
	argv := h.deps.Bundled(c.Use)
	if len(argv) == 0 {
		return nil, &failure{state: StateMisconfigured, reason: "unknown_plugin", message: h.unknownPlugin(c.Use)}
	}
	return argv, nil
}

// executable returns the copy to run of a third party's file.
func (h *Host) executable(c settings.Instance) (string, error) {
	if c.Unverified() && h.config().Dev {
		return h.trust.whatever(c.Use)
	}
	return h.trust.executable(c.Use, c.SHA256)
}

// unknownPlugin says what could have been meant.
func (h *Host) unknownPlugin(name string) string {
	text := fmt.Sprintf("no bundled plugin is named %q", name)
	best, distance := "", 4
	for _, known := range h.deps.BundledNames {
		if n := levenshtein.ComputeDistance(name, known); n < distance {
			best, distance = known, n
		}
	}
	if best != "" {
		return fmt.Sprintf("%s; did you mean %q?", text, best)
	}
	return text + "; write ./" + name + " for a file of that name"
}

// reach returns the process of an instance when it has shaken hands, or is
// connected to.
func (h *Host) reach(ctx context.Context, c settings.Instance, argv []string, r *resolved, logs *logBridge) (*peer, error) {
	if c.Attached() {
		return h.attach(ctx, c)
	}
	return h.launch(ctx, c, argv, r, logs)
}

// launch starts a process and returns it when it has shaken hands. Whatever goes
// wrong, no process is left behind.
func (h *Host) launch(ctx context.Context, c settings.Instance, argv []string, r *resolved, logs *logBridge) (*peer, error) {
	if err := h.runs.ensure(); err != nil {
		return nil, &failure{state: StateBackoff, reason: "socket_dir", message: err.Error()}
	}
	limits := c.EffectiveTimeouts()
	var started atomic.Pointer[process]
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: sdk.ProtocolVersion, MagicCookieKey: sdk.CookieKey, MagicCookieValue: sdk.CookieValue,
		},
		Plugins:          goplugin.PluginSet{"guidon": dialer{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     limits.Start,
		Logger:           hclog.NewNullLogger(),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: h.runs.path},
		GRPCDialOptions:  h.traces.dialOptions(),
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			started.Store(newProcess(argv, h.environment(c, r, spec.Env), c.Limits, logs))
			return started.Load(), nil
		},
	})
	conn, timedOut, err := connect(ctx, client, limits.Start, func() {
		if p := started.Load(); p != nil {
			_ = p.Kill(ctx)
		}
	})
	proc := started.Load()
	if err == nil {
		peer := newPeer(conn, proc)
		peer.client, peer.logs = client, logs
		return peer, nil
	}
	defer client.Kill()
	if proc == nil {
		return nil, &failure{state: StateBackoff, reason: "start", message: err.Error()}
	}
	// One that ends by itself gets the moment it needs to say why.
	if !proc.within(ctx, callGrace) {
		_ = proc.Kill(ctx)
		<-proc.exited
	}
	return nil, startFailure(proc, err, limits.Start, timedOut)
}

// startFailure sorts what went wrong before the handshake was over.
func startFailure(proc *process, err error, limit time.Duration, timedOut bool) *failure {
	out := &failure{state: StateBackoff, reason: "start", message: proc.startFailure(err, limit, timedOut), exit: &proc.exit}
	switch {
	case strings.Contains(err.Error(), "incompatible API version"), strings.Contains(err.Error(), "incompatible core API"):
		out.state, out.reason, out.message = StateIncompatible, "protocol", oneLine(err)
	case strings.Contains(err.Error(), "exec format error"):
		out.state, out.reason = StateIncompatible, "not_executable_here"
	}
	return out
}

func oneLine(err error) string { return clip(strings.Join(strings.Fields(err.Error()), " "), 300) }

// connect shakes hands and dials. go-plugin has waits without a deadline on the
// way, so at the limit, or when ctx ends, the process is killed under it.
func connect(ctx context.Context, client *goplugin.Client, limit time.Duration, kill func()) (conn *grpc.ClientConn, timedOut bool, err error) {
	type result struct {
		conn *grpc.ClientConn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		proto, err := client.Client()
		if err != nil {
			done <- result{err: err}
			return
		}
		raw, err := proto.Dispense("guidon")
		conn, _ := raw.(*grpc.ClientConn)
		done <- result{conn, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.conn, r.err != nil && strings.Contains(r.err.Error(), "timeout while waiting"), r.err
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
	}
	// The handshake may not have got as far as a process, so kill until it ends.
	for {
		kill()
		select {
		case r := <-done:
			if r.err == nil {
				r.err = errors.New("stopped while starting")
			}
			return nil, timedOut, r.err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// environment is everything a plugin sees: what go-plugin needs to say, what we
// say, and what the operator allowed.
func (h *Host) environment(c settings.Instance, r *resolved, protocol []string) []string {
	env := append([]string{}, protocol...)
	env = append(env, sdk.WatchKey+"=stdin", sdk.LogLevelKey+"="+h.config().LogLevel)
	if c.Limits.MemoryBytes > 0 { // a Go runtime collects in time; others do not mind
		env = append(env, "GOMEMLIMIT="+strconv.Itoa(c.Limits.MemoryBytes/10*9))
	}
	return append(env, r.env...)
}

// bridge makes the log of one process.
func (h *Host) bridge(c settings.Instance) *logBridge {
	log := h.deps.Log.Named("plugin").With(zap.String("plugin", c.Use))
	return newLogBridge(log, h.config().LogLinesPerSecond, func(instance string, n int) {
		if instance == "" {
			instance = c.Name
		}
		h.metrics.dropped.WithLabelValues(instance).Add(float64(n))
	})
}

// dialer is what go-plugin calls a plugin; ours hands out the connection.
type dialer struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (dialer) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugin")
}

func (dialer) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// image returns the running image when path names our own executable but the
// file has been replaced since, and otherwise path.
func image(path string) string {
	if self, err := os.Executable(); err == nil && path == self {
		if running := runningImage(self); running != "" {
			return running
		}
	}
	return path
}
