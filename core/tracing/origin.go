package tracing

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// Origin identifies the recorded span of the request that sent an event: 16 bytes of
// the trace and 8 of the span. The zero Origin is that of a request that is not
// traced.
type Origin [24]byte

// OriginOf returns the origin of the recorded span of ctx, zero without one.
func OriginOf(ctx context.Context) (o Origin) {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsSampled() {
		return o
	}
	traceID, spanID := c.TraceID(), c.SpanID()
	copy(o[:], traceID[:])
	copy(o[16:], spanID[:])
	return o
}

// ParseOrigin parses the text of Origin.String; zero for any other text.
func ParseOrigin(s string) (o Origin) {
	if n, err := hex.Decode(o[:], []byte(s[:min(len(s), 2*len(o))])); err != nil || n != len(o) || len(s) != 2*len(o) {
		return Origin{}
	}
	return o
}

// String returns 48 hexadecimal digits, or "" for the zero Origin.
func (o Origin) String() string {
	if o == (Origin{}) {
		return ""
	}
	return hex.EncodeToString(o[:])
}

// SpanContext returns the span as the parent or link of others.
func (o Origin) SpanContext() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(o[:16]), SpanID: trace.SpanID(o[16:]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// MaxLinks bounds the links of a span.
const MaxLinks = 128

// StartBatch starts the span of work on the events of these requests: a child of the
// request if it is one, else a trace of its own with a link to each of the first
// MaxLinks. Without requests it returns nil and a context in which no trace begins.
// Equal origins must be adjacent.
func (t *Tracing) StartBatch(ctx context.Context, name string, origins []Origin) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	var links []trace.Link
	requests := int64(0)
	for i, o := range origins {
		if o == (Origin{}) || i > 0 && o == origins[i-1] {
			continue
		}
		if requests++; requests <= MaxLinks {
			links = append(links, trace.Link{SpanContext: o.SpanContext()})
		}
	}
	switch requests {
	case 0:
		return t.Untraced(ctx), nil
	case 1:
		ctx = trace.ContextWithRemoteSpanContext(ctx, links[0].SpanContext)
		links = nil
	}
	_, span := t.tracer.Start(traced(ctx), name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...))
	out := &Span{span}
	out.Int("guidon.requests", requests)
	return trace.ContextWithSpan(ctx, span), out
}

type originsKey struct{}

// WithOrigins adds the origins of events to ctx, by uuid.
func WithOrigins(ctx context.Context, byUUID map[string]Origin) context.Context {
	if len(byUUID) == 0 {
		return ctx
	}
	return context.WithValue(ctx, originsKey{}, byUUID)
}

// OriginOfEvent returns the origin of an event from the context of WithOrigins, zero
// without one.
func OriginOfEvent(ctx context.Context, uuid string) Origin {
	byUUID, _ := ctx.Value(originsKey{}).(map[string]Origin)
	return byUUID[uuid]
}
