package host

import (
	"context"
	"sync"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// peer is a plugin at the other end of a connection, and the connection. Mostly
// it is a child process of ours; it may also be a process that somebody else
// started. One peer may serve several instances.
type peer struct {
	proc   *process         // nil when the process is not ours
	client *goplugin.Client // nil when the process is not ours
	conn   *grpc.ClientConn
	plugin pluginv1.PluginServiceClient
	sink   sinkv1.SinkServiceClient
	info   *pluginv1.InfoResponse
	schema *configSchema // nil when it has none, or none that can be used
	logs   *logBridge    // nil when the process is not ours

	exited  <-chan struct{} // closed when there is nobody at the other end
	forsake func()          // closes exited of a process that is not ours
}

// newPeer puts the services on a connection. Without a process the peer is gone
// when it is forsaken.
func newPeer(conn *grpc.ClientConn, proc *process) *peer {
	p := &peer{proc: proc, conn: conn, plugin: pluginv1.NewPluginServiceClient(conn), sink: sinkv1.NewSinkServiceClient(conn)}
	if proc != nil {
		p.exited = proc.exited
		return p
	}
	gone := make(chan struct{})
	p.exited, p.forsake = gone, sync.OnceFunc(func() { close(gone) })
	return p
}

// alive reports whether there is somebody at the other end, as far as we know.
func (p *peer) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// within waits for the end and reports whether it came in time.
func (p *peer) within(ctx context.Context, d time.Duration) bool {
	return closedWithin(ctx, p.exited, d)
}

// exit is how the process ended; call it when exited is closed.
func (p *peer) exit() ExitStatus {
	if p.proc == nil {
		return ExitStatus{At: time.Now().UTC(), Expected: true, Foreign: true}
	}
	return p.proc.exit
}

// pid is 0 when the process is not ours.
func (p *peer) pid() int {
	if p.proc == nil {
		return 0
	}
	return p.proc.cmd.Process.Pid
}

// introduce asks who the plugin is.
func (p *peer) introduce(ctx context.Context, limit time.Duration, hostVersion string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	info, err := p.plugin.Info(ctx, &pluginv1.InfoRequest{
		HostName: "guidon", HostVersion: hostVersion, ProtocolMinor: sdk.ProtocolMinor, Features: []string{"features/v1"},
	})
	p.info = info
	return err
}

// describeConfig asks which config the plugin takes. A plugin without an answer
// checks its config itself.
func (p *peer) describeConfig(ctx context.Context, kind pluginv1.Kind, limit time.Duration) (text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := p.plugin.ConfigSchema(ctx, &pluginv1.ConfigSchemaRequest{Kind: kind})
	if err != nil || len(out.GetJsonSchema()) == 0 {
		return nil, nil // whoever cannot say this can still be well
	}
	p.schema, err = compileSchema(out.GetJsonSchema())
	return out.GetJsonSchema(), err
}

// strike makes sure that the process is gone, politely for as long as grace.
func (p *peer) strike(ctx context.Context, grace time.Duration) {
	if p.proc == nil {
		p.forsake()
		return
	}
	p.proc.end(ctx, grace)
}

// end takes the peer down in our own order: drain, shut down, each with a
// deadline, then signals. A process that is not ours is only left. It returns
// when the process is reaped.
func (p *peer) end(ctx context.Context, limits settings.Timeouts, clean bool) {
	if p.proc != nil {
		p.proc.expected()
		if p.alive() {
			p.finish(ctx, limits, clean)
		}
	}
	p.strike(ctx, limits.Stop)
	// Only now, when nothing can block it any more: it removes the socket.
	_ = p.conn.Close()
	if p.client != nil {
		p.client.Kill()
	}
}

// finish asks the process to finish, and gives up at the first silence. What
// already hangs is not waited for.
func (p *peer) finish(ctx context.Context, limits settings.Timeouts, clean bool) {
	patience := min(limits.Drain, limits.Health)
	if clean {
		patience = limits.Drain
	}
	err := within(ctx, patience+limits.Health, func(ctx context.Context) error {
		_, err := p.plugin.Drain(ctx, &pluginv1.DrainRequest{Deadline: durationpb.New(patience)})
		return err
	})
	if err != nil {
		return
	}
	err = within(ctx, limits.Stop, func(ctx context.Context) error {
		return p.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	})
	if code := status.Code(err); err == nil || code == codes.Unavailable || code == codes.Canceled {
		p.within(ctx, limits.Stop)
	}
}

// within calls fn with a deadline.
func within(ctx context.Context, limit time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return fn(ctx)
}
