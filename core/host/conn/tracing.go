package conn

import (
	"context"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// Tracing records calls of plugins as spans and propagates the trace to plugins. A
// nil Tracing does nothing at no cost.
type Tracing struct {
	tracer   trace.Tracer
	provider trace.TracerProvider
}

// NewTracing returns nil for a nil provider.
func NewTracing(p trace.TracerProvider) *Tracing {
	if p == nil {
		return nil
	}
	return &Tracing{p.Tracer("github.com/guidonhq/guidon/core/host"), p}
}

// dialOptions returns the options of every connection to a plugin: message sizes as in
// the contract, and tracing.
func (t *Tracing) dialOptions() []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(sdk.MaxMessageBytes), grpc.MaxCallSendMsgSize(sdk.MaxMessageBytes)),
	}
	if t == nil {
		return options
	}
	return append(options, grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithMeterProvider(noop.NewMeterProvider()), otelgrpc.WithFilter(isTraced),
	)))
}

// isTraced leaves out the periodic calls of the host.
func isTraced(info *stats.RPCTagInfo) bool {
	switch info.FullMethodName {
	case pluginv1.PluginService_Health_FullMethodName, pluginv1.PluginService_Metrics_FullMethodName:
		return false
	}
	return true
}

// startSpan begins the span of one call of an instance. end takes the result.
func (t *Tracing) startSpan(ctx context.Context, s *Session, method string) (_ context.Context, end func(outcome string, err error)) {
	if t == nil || method == "health" {
		return ctx, func(string, error) {}
	}
	ctx, span := t.tracer.Start(ctx, "plugin "+method, trace.WithAttributes(
		attribute.String("guidon.instance", s.Settings.Name), attribute.String("guidon.plugin", s.Info.GetName()),
	))
	return ctx, func(outcome string, err error) {
		span.SetAttributes(attribute.String("guidon.outcome", outcome))
		if err != nil {
			span.SetStatus(codes.Error, s.Redactor.Redact(err.Error()))
		}
		span.End()
	}
}
