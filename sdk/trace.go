package sdk

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// TraceParent returns which trace and span the call that ctx belongs to is part
// of, as the W3C header traceparent has it, or "" when it is part of none. With
// OpenTelemetry, hand it to propagation.TraceContext as "traceparent" to have
// the plugin's own spans in the server's trace; or send it on to whoever the
// plugin calls.
func TraceParent(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(values) > 0 {
		return values[0]
	}
	return ""
}
