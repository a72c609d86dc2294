package sdk

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/queryv1alpha1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

// server answers the host: it keeps the instances and turns messages into
// calls of the author's code.
type server struct {
	pluginv1.UnimplementedPluginServiceServer

	plugin Plugin

	mu        sync.Mutex
	instances map[string]*instance
	draining  bool
	pending   int
	idle      chan struct{} // closed when pending falls to 0; made by Drain

	redirect  sync.Once
	drained   chan struct{} // closed by the first Drain
	drainOnce sync.Once
}

func newServer(p Plugin) *server {
	return &server{plugin: p, instances: map[string]*instance{}, drained: make(chan struct{})}
}

func (s *server) register(g *grpc.Server) {
	pluginv1.RegisterPluginServiceServer(g, s)
	if s.plugin.Sink != nil {
		sinkv1.RegisterSinkServiceServer(g, &sinkServer{server: s})
		queryv1alpha1.RegisterSinkQueryServiceServer(g, &queryServer{server: s})
	}
	if s.plugin.Notifier != nil {
		notifyv1.RegisterNotifierServiceServer(g, &notifierServer{server: s})
	}
	if s.plugin.Matcher != nil {
		matchv1.RegisterMatcherServiceServer(g, &matcherServer{server: s})
	}
}

// grpcServer makes the server with our limits; go-plugin adds the TLS options.
func (s *server) grpcServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts,
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		grpc.ChainUnaryInterceptor(s.intercept),
		grpc.ChainStreamInterceptor(s.interceptStream),
	)...)
}

// intercept runs around every call: it keeps a panic from ending the process
// and, at the first call, takes standard output and error back from go-plugin.
func (s *server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	s.redirect.Do(takeBackOutput)
	defer func() {
		if r := recover(); r != nil {
			logger.Error("panic", "method", info.FullMethod, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = status.Errorf(codes.Internal, "panic in %s: %v", info.FullMethod, r)
		}
	}()
	return next(ctx, req)
}

// interceptStream is intercept for calls that answer in parts.
func (s *server) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	_, err := s.intercept(stream.Context(), nil, &grpc.UnaryServerInfo{FullMethod: info.FullMethod},
		func(context.Context, any) (any, error) { return nil, next(srv, stream) })
	return err
}

// Info introduces the plugin.
func (s *server) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	out := &pluginv1.InfoResponse{
		Name: s.plugin.Name, Version: s.plugin.Version, Summary: s.plugin.Summary,
		ProtocolMinor:   ProtocolMinor,
		Features:        []string{"plugin/metrics/v1", "plugin/log_level/v1"},
		Sdk:             "guidon-go/" + Version,
		MaxMessageBytes: MaxMessageBytes,
		MultiInstance:   !s.plugin.SingleInstance,
		Exclusive:       s.plugin.Exclusive,
	}
	for _, k := range s.plugin.kinds() {
		out.Kinds = append(out.Kinds, k.number)
		out.Features = append(out.Features, k.features()...)
	}
	return out, nil
}

// instance returns the instance of that name, or nil.
func (s *server) instance(id string) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instances[id]
}

// begin counts a piece of work in; it refuses when the process is draining.
func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.pending++
	return true
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending--; s.pending == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// Drain refuses new work and waits for the work at hand.
func (s *server) Drain(ctx context.Context, req *pluginv1.DrainRequest) (*pluginv1.DrainResponse, error) {
	s.drainOnce.Do(func() { close(s.drained) })
	if d := req.GetDeadline().AsDuration(); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	s.mu.Lock()
	s.draining = true
	if s.pending > 0 && s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &pluginv1.DrainResponse{Drained: s.pending == 0, Pending: uint32(s.pending)}, nil
}

// Health answers from memory.
func (s *server) Health(_ context.Context, req *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := req.GetInstanceIds()
	if len(ids) == 0 {
		for id := range s.instances {
			ids = append(ids, id)
		}
	}
	out := &pluginv1.HealthResponse{Serving: !s.draining}
	for _, id := range ids {
		if in := s.instances[id]; in != nil {
			out.Instances = append(out.Instances, in.health(s.draining))
		}
	}
	return out, nil
}

// Check lets an instance try the real thing.
func (s *server) Check(ctx context.Context, req *pluginv1.CheckRequest) (*pluginv1.CheckResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &pluginv1.CheckResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	start := time.Now()
	err := in.check(in.context(ctx))
	return &pluginv1.CheckResponse{
		Ok: err == nil, Error: errorToProto(AsError(err)), Latency: durationpb.New(time.Since(start)),
	}, nil
}

// Close releases an instance.
func (s *server) Close(ctx context.Context, req *pluginv1.CloseRequest) (*pluginv1.CloseResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &pluginv1.CloseResponse{Closed: true}, nil
	}
	err := in.close(in.context(ctx))
	s.mu.Lock()
	if s.instances[in.id] == in {
		delete(s.instances, in.id)
	}
	s.mu.Unlock()
	return &pluginv1.CloseResponse{Closed: true, Error: errorToProto(AsError(err))}, nil
}

// closeAll releases every instance, at the end of the process. It also waits
// for a Close that is under way.
func (s *server) closeAll(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	instances := slices.Collect(maps.Values(s.instances))
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, in := range instances {
			if err := in.close(in.context(ctx)); err != nil {
				logger.Warn("close failed", "instance", in.id, "error", err.Error())
			}
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func unknownInstance(id string) *Error {
	return &Error{
		Class: ClassNotConnected, Code: "unknown_instance",
		Message: fmt.Sprintf("instance %q was not configured here", id), Source: SourcePlugin,
	}
}
