package tracing

import (
	"context"
	"math/rand/v2"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// StartRequest starts the span of a request to a route, below that of the header
// traceparent, if the request is traced; else it returns ctx and nil. The bytes of
// the headers may be overwritten after the call.
func (t *Tracing) StartRequest(ctx context.Context, method, route string, traceparent, tracestate []byte) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	selected := t.threshold > 0 && rand.Uint64() <= t.threshold
	if len(traceparent) == 0 && !selected {
		return ctx, nil
	}
	parent := parentOf(traceparent, tracestate)
	switch {
	case !parent.IsValid():
		if !selected {
			return ctx, nil
		}
	case !parent.IsSampled(), !selected && !t.clients.Allow():
		return ctx, nil
	default:
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	_, span := t.tracer.Start(traced(ctx), method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route),
	))
	return context.WithValue(trace.ContextWithSpan(ctx, span), decisionKey{}, nil), &Span{span}
}

// maxTraceState bounds a tracestate; a longer one is not propagated.
const maxTraceState = 512

func parentOf(traceparent, tracestate []byte) trace.SpanContext {
	if len(traceparent) == 0 || len(traceparent) > 128 {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": string(traceparent)}
	if len(tracestate) > 0 && len(tracestate) <= maxTraceState {
		carrier["tracestate"] = string(tracestate)
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// EndRequest ends the span of a request. code is that of a failure, or "".
func (s *Span) EndRequest(status int, code, requestID string, project int64) {
	if s == nil {
		return
	}
	s.Int("http.response.status_code", int64(status))
	s.Text("guidon.request_id", requestID)
	if project != 0 {
		s.Int("guidon.project_id", project)
	}
	if code != "" {
		s.Text("guidon.code", code)
	}
	failure := ""
	if status >= http.StatusInternalServerError {
		if failure = code; failure == "" {
			failure = http.StatusText(status)
		}
	}
	s.EndWith(failure)
}
