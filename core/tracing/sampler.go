package tracing

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// decisionKey is the key of a decision about new traces in a context.
type decisionKey struct{}

// sampler records spans below recorded ones, and new traces as their context decides:
// Start samples requests before a span is made. Calls without a decision, such as
// those of plugins by the host itself, are sampled by ratio.
type sampler struct{ ratio sdktrace.Sampler }

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	record, decided := p.ParentContext.Value(decisionKey{}).(bool)
	if parent.IsValid() && !decided {
		record, decided = parent.IsSampled(), true
	}
	if !decided {
		return s.ratio.ShouldSample(p)
	}
	out := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	if record {
		out.Decision = sdktrace.RecordAndSample
	}
	return out
}

func (s sampler) Description() string { return "GuidonRequests" }

// Untraced returns a context in which no trace begins: calls of plugins for a request
// that is not sampled are not recorded alone.
func (t *Tracing) Untraced(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, decisionKey{}, false)
}

// traced returns a context in which a new span is recorded. It must not be the
// context of spans below it.
func traced(ctx context.Context) context.Context { return context.WithValue(ctx, decisionKey{}, true) }
