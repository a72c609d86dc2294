package host

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

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// tracing puts calls of plugins into traces, and tells plugins which trace a
// call is part of. The nil one does nothing and costs nothing.
type tracing struct {
	tracer   trace.Tracer
	provider trace.TracerProvider
}

func newTracing(p trace.TracerProvider) *tracing {
	if p == nil {
		return nil
	}
	return &tracing{p.Tracer("github.com/guidonhq/guidon/core/host"), p}
}

// dialOptions are those of every connection to a plugin.
func (t *tracing) dialOptions() []grpc.DialOption {
	options := []grpc.DialOption{callSizes()}
	if t == nil {
		return options
	}
	return append(options, grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithMeterProvider(noop.NewMeterProvider()), otelgrpc.WithFilter(worthTracing),
	)))
}

// worthTracing leaves out what the host asks by the clock.
func worthTracing(info *stats.RPCTagInfo) bool {
	switch info.FullMethodName {
	case pluginv1.PluginService_Health_FullMethodName, pluginv1.PluginService_Metrics_FullMethodName:
		return false
	}
	return true
}

// start begins the span of one call of an instance. end takes how it ended.
func (t *tracing) start(ctx context.Context, s *session, method string) (_ context.Context, end func(outcome string, err error)) {
	if t == nil || method == "health" {
		return ctx, func(string, error) {}
	}
	ctx, span := t.tracer.Start(ctx, "plugin "+method, trace.WithAttributes(
		attribute.String("guidon.instance", s.instance), attribute.String("guidon.plugin", s.info.GetName()),
	))
	return ctx, func(outcome string, err error) {
		span.SetAttributes(attribute.String("guidon.outcome", outcome))
		if err != nil {
			span.SetStatus(codes.Error, s.scrub.clean(err.Error()))
		}
		span.End()
	}
}
