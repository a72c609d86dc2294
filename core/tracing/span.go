package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/guidonhq/guidon/core/fault"
)

// Span is a recorded span. The methods of a nil Span do nothing.
type Span struct{ span trace.Span }

// Int sets an attribute.
func (s *Span) Int(name string, value int64) {
	if s != nil {
		s.span.SetAttributes(attribute.Int64(name, value))
	}
}

// Text sets an attribute.
func (s *Span) Text(name, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// TraceID returns the id of the trace, or "".
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// End ends the span of work with that error, of which it has the code only.
func (s *Span) End(err error) {
	code := ""
	if s != nil && err != nil {
		code = fault.CodeOf(err)
	}
	s.EndWith(code)
}

// EndWith ends the span. code is the class or code of a failure, or "".
func (s *Span) EndWith(code string) {
	if s == nil {
		return
	}
	if code != "" {
		s.span.SetAttributes(attribute.String("error.type", code))
		s.span.SetStatus(codes.Error, code)
	}
	s.span.End()
}

// Child starts a span below the recorded span of ctx. Without one it returns ctx and
// nil.
func Child(ctx context.Context, name string) (context.Context, *Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nil
	}
	ctx, span := parent.TracerProvider().Tracer(instrumentation).Start(ctx, name)
	return ctx, &Span{span}
}
