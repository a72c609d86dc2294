package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// session is one living process of an instance and the connection to it. Every
// call has a deadline and is measured.
type session struct {
	instance   string
	generation uint64
	timeouts   TimeoutConfig
	proc       *process
	client     *goplugin.Client
	conn       *grpc.ClientConn
	plugin     pluginv1.PluginServiceClient
	sink       sinkv1.SinkServiceClient
	scrub      *scrubber
	metrics    *metrics

	late    atomic.Int32  // calls in a row that ended at their deadline
	highest atomic.Uint64 // the highest sequence number sent
	staged  atomic.Uint64 // the highest watermark of staged records heard of
	staging atomic.Bool   // the sink makes records safe by Flush
}

// call runs fn with a deadline and records how long it took and how it ended.
func (s *session) call(ctx context.Context, method string, limit time.Duration, fn func(context.Context) (outcome string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.metrics.inFlight.WithLabelValues(s.instance).Inc()
	defer s.metrics.inFlight.WithLabelValues(s.instance).Dec()
	start := time.Now()
	outcome, err := fn(ctx)
	if err != nil {
		outcome = status.Code(err).String()
	}
	s.metrics.calls.WithLabelValues(s.instance, method, outcome).Observe(time.Since(start).Seconds())
	return err
}

// info asks who the plugin is.
func (s *session) info(ctx context.Context, hostVersion string) (*pluginv1.InfoResponse, error) {
	var out *pluginv1.InfoResponse
	err := s.call(ctx, "info", s.timeouts.Start, func(ctx context.Context) (_ string, err error) {
		out, err = s.plugin.Info(ctx, &pluginv1.InfoRequest{
			HostName: "guidon", HostVersion: hostVersion, ProtocolMinor: sdk.ProtocolMinor, Features: []string{"features/v1"},
		})
		return "ok", err
	})
	return out, err
}

// configure hands over the config.
func (s *session) configure(ctx context.Context, r *resolved) (*pluginv1.ConfigureResponse, error) {
	var out *pluginv1.ConfigureResponse
	err := s.call(ctx, "configure", s.timeouts.Start, func(ctx context.Context) (_ string, err error) {
		out, err = s.plugin.Configure(ctx, &pluginv1.ConfigureRequest{
			InstanceId: s.instance, Generation: s.generation,
			Config: &pluginv1.Config{ConfigJson: r.json, Secrets: r.secrets},
		})
		return accepted(out.GetAccepted()), err
	})
	return out, err
}

func accepted(ok bool) string {
	if ok {
		return "ok"
	}
	return "refused"
}

// open connects the instance.
func (s *session) open(ctx context.Context, through uint64) (*sinkv1.OpenResponse, error) {
	var out *sinkv1.OpenResponse
	err := s.call(ctx, "open", s.timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = s.sink.Open(ctx, &sinkv1.OpenRequest{InstanceId: s.instance, CommittedThrough: through})
		return accepted(out.GetOpened()), err
	})
	return out, err
}

// healthy asks whether the process takes work and the instance is open. An
// empty answer is not a healthy one.
func (s *session) healthy(ctx context.Context) error {
	var out *pluginv1.HealthResponse
	err := s.call(ctx, "health", s.timeouts.Health, func(ctx context.Context) (_ string, err error) {
		out, err = s.plugin.Health(ctx, &pluginv1.HealthRequest{InstanceIds: []string{s.instance}})
		return accepted(out.GetServing()), err
	})
	if err != nil {
		return fmt.Errorf("no health report: %s", status.Convert(err).Message())
	}
	if !out.GetServing() {
		return fmt.Errorf("the plugin says that it does not serve")
	}
	for _, in := range out.GetInstances() {
		if in.GetInstanceId() == s.instance && in.GetStatus() == pluginv1.InstanceHealth_STATUS_READY {
			return nil
		}
	}
	return errNotOpen
}

// errNotOpen says that the process is well but the instance needs an Open.
var errNotOpen = fmt.Errorf("the plugin says that the instance is not open")

// end takes the process down in our own order: drain, close, shut down, each
// with a deadline, then signals. A process that does not answer gets the
// signals only. It returns when the process is reaped.
func (s *session) end(ctx context.Context, answers bool) {
	s.proc.expected()
	if answers && s.proc.alive() {
		s.finish(ctx)
	}
	s.proc.end(ctx, s.timeouts.Stop)
	// Only now, when nothing can block it any more: it removes the socket.
	_ = s.conn.Close()
	s.client.Kill()
}

// flush has a staging sink make safe what it holds, before it is closed. What
// it does not confirm is sent again to the next process.
func (s *session) flush(ctx context.Context) {
	if !s.staging.Load() {
		return
	}
	highest := s.highest.Load()
	_ = s.call(ctx, "flush", s.timeouts.Flush, func(ctx context.Context) (string, error) {
		out, err := s.sink.Flush(ctx, &sinkv1.FlushRequest{
			InstanceId: s.instance, Reason: sinkv1.FlushRequest_REASON_SHUTDOWN, UpToSeq: highest,
		})
		if err == nil && out.GetError() == nil {
			if r, broken := flushFromProto(out, highest, s.staged.Load(), s.scrub); broken == nil {
				raise(&s.staged, r.CommittedThrough)
			}
		}
		return accepted(out.GetFlushed()), err
	})
}

// finish asks the plugin to finish, and gives up at the first silence.
func (s *session) finish(ctx context.Context) {
	var drained *pluginv1.DrainResponse
	err := s.call(ctx, "drain", s.timeouts.Drain+time.Second, func(ctx context.Context) (_ string, err error) {
		drained, err = s.plugin.Drain(ctx, &pluginv1.DrainRequest{Deadline: durationpb.New(s.timeouts.Drain)})
		return accepted(drained.GetDrained()), err
	})
	if err != nil {
		return
	}
	if drained.GetDrained() { // otherwise these would wait for what hangs
		s.flush(ctx)
		err = s.call(ctx, "close", s.timeouts.Flush, func(ctx context.Context) (string, error) {
			out, err := s.plugin.Close(ctx, &pluginv1.CloseRequest{InstanceId: s.instance})
			return accepted(out.GetClosed()), err
		})
	}
	if err != nil {
		return
	}
	err = s.call(ctx, "shutdown", s.timeouts.Stop, func(ctx context.Context) (string, error) {
		return "ok", s.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	})
	if code := status.Code(err); err == nil || code == codes.Unavailable || code == codes.Canceled {
		s.proc.within(ctx, s.timeouts.Stop)
	}
}
