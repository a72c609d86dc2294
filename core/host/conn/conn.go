// Package conn connects the host to plugins: it starts or attaches processes, shares
// them between instances, and makes measured calls.
//
// A Conn is one plugin at the other end of a gRPC connection. Usually it is a child
// process; it may also be a process that was started elsewhere and is reached by a
// socket (reattach) or over TLS (remote). A Pool shares connections: instances whose
// processes would be identical use one, when the plugin allows it. A Session is one
// generation of an instance in such a process; every call of a session has a
// deadline and is counted, traced and measured. A Gate holds the current session of
// an instance: callers enter it or wait, so that nothing calls a dead process.
//
// When Pool.Open fails, no process is left that has no other instance. When
// Session.End returns, the instance is closed or the process is ended; the last
// instance to leave ends the process. The package never restarts anything.
package conn

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/schema"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// Conn is a connection to a plugin. One connection may serve several instances.
type Conn struct {
	GRPC   *grpc.ClientConn
	Plugin pluginv1.PluginServiceClient
	Sink   sinkv1.SinkServiceClient
	// Info is the plugin's description of itself.
	Info *pluginv1.InfoResponse
	// Schema is nil when the plugin has no valid config schema.
	Schema *schema.Schema

	proc     *process.Process // nil for an attached process
	release  func()           // removes the socket; nil for an attached process
	exited   <-chan struct{}  // closed when the process or the connection is gone
	markGone func()           // closes exited of an attached process
}

// newConn returns a connection to proc, or to an attached process when proc is nil.
func newConn(cc *grpc.ClientConn, proc *process.Process) *Conn {
	c := &Conn{GRPC: cc, proc: proc, Plugin: pluginv1.NewPluginServiceClient(cc), Sink: sinkv1.NewSinkServiceClient(cc)}
	if proc != nil {
		c.exited = proc.Exited()
		return c
	}
	gone := make(chan struct{})
	c.exited, c.markGone = gone, sync.OnceFunc(func() { close(gone) })
	return c
}

// Attached reports whether the host did not start the process.
func (c *Conn) Attached() bool { return c.proc == nil }

// Exited is closed when the process has ended or the connection is lost.
func (c *Conn) Exited() <-chan struct{} { return c.exited }

// Alive reports whether Exited is open.
func (c *Conn) Alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Exit returns how the process ended. It must be called after Exited is closed.
func (c *Conn) Exit() process.ExitStatus {
	if c.proc == nil {
		return process.ExitStatus{At: time.Now().UTC(), Expected: true, Foreign: true}
	}
	return c.proc.Exit()
}

// PID returns the process id, 0 for an attached process.
func (c *Conn) PID() int {
	if c.proc == nil {
		return 0
	}
	return c.proc.PID()
}

// loadInfo requests the plugin's description of itself.
func (c *Conn) loadInfo(ctx context.Context, limit time.Duration, hostVersion string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	info, err := c.Plugin.Info(ctx, &pluginv1.InfoRequest{
		HostName: "guidon", HostVersion: hostVersion, ProtocolMinor: sdk.ProtocolMinor, Features: []string{"features/v1"},
	})
	c.Info = info
	return err
}

// loadSchema requests the config schema. A plugin without one checks its config
// itself. The error is about an invalid schema.
func (c *Conn) loadSchema(ctx context.Context, kind pluginv1.Kind, limit time.Duration) (source []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := c.Plugin.ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: kind})
	if err != nil || len(out.GetJsonSchema()) == 0 {
		return nil, nil // the method is optional
	}
	c.Schema, err = schema.Compile(out.GetJsonSchema())
	return out.GetJsonSchema(), err
}

// terminate ends the process with signals, or drops the connection to an attached
// process.
func (c *Conn) terminate(ctx context.Context, grace time.Duration) {
	if c.proc == nil {
		c.markGone()
		return
	}
	c.proc.Terminate(ctx, grace)
}

// shutDown ends the process in order: drain, shutdown request, signals, each with a
// deadline. It leaves an attached process running. It returns when the process is
// reaped.
func (c *Conn) shutDown(ctx context.Context, limits settings.Timeouts, clean bool) {
	if c.proc != nil {
		c.proc.ExpectExit()
		if c.Alive() {
			c.requestShutdown(ctx, limits, clean)
		}
	}
	c.terminate(ctx, limits.Stop)
	// Close and release block while the process runs, so they come last.
	_ = c.GRPC.Close()
	if c.release != nil {
		c.release()
	}
}

// requestShutdown asks the process to drain and exit. It returns early when the
// process does not answer.
func (c *Conn) requestShutdown(ctx context.Context, limits settings.Timeouts, clean bool) {
	drain := min(limits.Drain, limits.Health)
	if clean {
		drain = limits.Drain
	}
	err := withTimeout(ctx, drain+limits.Health, func(ctx context.Context) error {
		_, err := c.Plugin.Drain(ctx, &pluginv1.DrainRequest{Deadline: durationpb.New(drain)})
		return err
	})
	if err != nil {
		return
	}
	err = withTimeout(ctx, limits.Stop, func(ctx context.Context) error {
		return c.GRPC.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	})
	if code := status.Code(err); err == nil || code == codes.Unavailable || code == codes.Canceled {
		process.WaitClosed(ctx, c.exited, limits.Stop)
	}
}

// callFailure returns the failure of a call while the instance starts. The exit of
// the process explains it, otherwise the error of the call.
func (c *Conn) callFailure(ctx context.Context, method string, err error, redactor *secret.Redactor) *lifecycle.Failure {
	if c.exitsSoon(ctx) {
		return c.ExitFailure()
	}
	return &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: method, Message: redactor.Redact(method + ": " + status.Convert(err).Message())}
}

// HealthFailure returns the failure of a process whose health checks have failed with err.
// A process that has just died fails them, too: then its exit is the failure.
func (c *Conn) HealthFailure(ctx context.Context, err error) *lifecycle.Failure {
	if c.exitsSoon(ctx) {
		return c.ExitFailure()
	}
	return &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: ReasonHealth, Message: err.Error()}
}

// ReasonHealth is the reason of a failure because of health checks.
const ReasonHealth = "health"

// ExitFailure is the failure of an unexpected exit. It must be called after Exited is closed.
func (c *Conn) ExitFailure() *lifecycle.Failure {
	exit := c.Exit()
	return &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: exit.Reason(), Message: exit.String()}
}

// exitsSoon waits a moment for the exit of a process that broke a call, and reports whether
// it has exited. Nothing is known of the exit of an attached process.
func (c *Conn) exitsSoon(ctx context.Context) bool {
	return c.proc != nil && process.WaitClosed(ctx, c.exited, process.ExitGrace)
}

// launchFailure converts the error of process.Launch.
func launchFailure(err error) error {
	var start *process.StartError
	if !errors.As(err, &start) {
		return err
	}
	f := &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: start.Reason, Message: start.Message, Exit: start.Exit}
	if start.Incompatible {
		f.State = lifecycle.StateIncompatible
	}
	return f
}

// withTimeout calls fn with a deadline.
func withTimeout(ctx context.Context, limit time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return fn(ctx)
}
