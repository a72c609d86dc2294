package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/guidonhq/guidon/core/host/cgroup"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/hostcert"
)

// ExitGrace is how long a process that broke a call gets to exit by itself, so
// that its exit status explains the error.
const ExitGrace = 100 * time.Millisecond

// Options describe a process to launch.
type Options struct {
	// Argv is the command line; the first element is the executable.
	Argv []string
	// Env is the environment, apart from the variables of the handshake.
	Env    []string
	Limits settings.Limits
	// Network is that of settings.Instance.
	Network string
	// Groups makes the control group of the process; nil for none.
	Groups *cgroup.Parent
	// User is the user that the process runs as; nil for the user of the server.
	User *User
	// StartTimeout limits start and handshake.
	StartTimeout time.Duration
	// SocketDir is the directory of the socket, which User can reach.
	SocketDir   string
	DialOptions []grpc.DialOption
	Logs        *LogPipe
}

// StartError is a process that did not complete the handshake.
type StartError struct {
	// Reason is a label: start, protocol or not_executable_here.
	Reason  string
	Message string
	// Incompatible is true when the same executable cannot succeed here.
	Incompatible bool
	// Exit is nil when no process was started.
	Exit *ExitStatus
}

func (e *StartError) Error() string { return e.Message }

// Launched is a process after the handshake.
type Launched struct {
	Process *Process
	Conn    *grpc.ClientConn
	// Release removes the socket. It must be called after the process has ended.
	Release func()
}

// Launch starts a process and returns it after the handshake. After an error,
// always a *StartError, no process is left.
func Launch(ctx context.Context, o Options) (*Launched, error) {
	if o.Network == settings.NetworkNone && runtime.GOOS != "linux" {
		return nil, &StartError{Reason: "not_executable_here", Message: "network: none works on Linux only", Incompatible: true}
	}
	pair, certificate, err := hostcert.New()
	if err != nil {
		return nil, &StartError{Reason: "start", Message: "make the certificate of the host: " + err.Error()}
	}
	var started atomic.Pointer[Process]
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: sdk.ProtocolVersion, MagicCookieKey: sdk.CookieKey, MagicCookieValue: sdk.CookieValue,
		},
		Plugins:          goplugin.PluginSet{"guidon": dialer{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		// go-plugin's own certificate (AutoMTLS) is refused by other TLS libraries.
		TLSConfig:        hostcert.ClientConfig(pair),
		SkipHostEnv:      true,
		StartTimeout:     o.StartTimeout,
		Logger:           hclog.NewNullLogger(),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: o.SocketDir},
		GRPCDialOptions:  o.DialOptions,
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			started.Store(newProcess(o, slices.Concat(spec.Env, []string{hostcert.EnvKey + "=" + string(certificate)}, o.Env)))
			return started.Load(), nil
		},
	})
	conn, timedOut, err := connect(ctx, client, o.StartTimeout, func() {
		if p := started.Load(); p != nil {
			_ = p.Kill(ctx)
		}
	})
	p := started.Load()
	if err == nil {
		return &Launched{Process: p, Conn: conn, Release: client.Kill}, nil
	}
	defer client.Kill()
	if p == nil {
		return nil, &StartError{Reason: "start", Message: err.Error()}
	}
	if !WaitClosed(ctx, p.exited, ExitGrace) {
		_ = p.Kill(ctx)
		<-p.exited
	}
	return nil, p.startError(err, o.StartTimeout, timedOut)
}

// startError classifies an error before the end of the handshake.
func (p *Process) startError(err error, limit time.Duration, timedOut bool) *StartError {
	out := &StartError{Reason: "start", Message: p.startMessage(err, limit, timedOut), Exit: &p.exit}
	switch {
	case strings.Contains(err.Error(), "incompatible API version"), strings.Contains(err.Error(), "incompatible core API"):
		out.Reason, out.Incompatible = "protocol", true
		out.Message = text.Ellipsis(strings.Join(strings.Fields(err.Error()), " "), 300)
	case strings.Contains(err.Error(), "exec format error"):
		out.Reason, out.Incompatible = "not_executable_here", true
	}
	return out
}

// startMessage returns one sentence on why a process did not start.
func (p *Process) startMessage(err error, limit time.Duration, timedOut bool) string {
	p.mu.Lock()
	early, pid := p.early, p.pid
	p.mu.Unlock()
	switch {
	case pid == 0:
		return "could not be executed: " + err.Error()
	case early != "":
		return fmt.Sprintf("printed before the handshake: %q (only the handshake line may go to standard output)", early)
	case timedOut:
		return fmt.Sprintf("no handshake within %s", limit)
	case !p.exit.Expected:
		return p.exit.sentence(" while starting")
	default:
		return "handshake failed: " + text.Ellipsis(strings.ReplaceAll(err.Error(), "\n", " "), 300)
	}
}

// connect completes the handshake and dials. go-plugin waits without a deadline
// in places, so connect kills the process at the limit or when ctx ends.
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
	// go-plugin may not have started the process yet, so kill until it returns.
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

// dialer is the plugin type that go-plugin requires; it returns the connection.
type dialer struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (dialer) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugin")
}

func (dialer) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// image returns the path of the running program when path names it but the file
// has been replaced since, and otherwise path.
func image(path string) string {
	if self, err := os.Executable(); err == nil && path == self {
		if running := runningImage(self); running != "" {
			return running
		}
	}
	return path
}
