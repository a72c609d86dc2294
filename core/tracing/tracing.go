// Package tracing records OpenTelemetry spans and exports them over OTLP.
//
// A trace begins with a request: one that carries a sampled W3C traceparent, or one
// that the server samples. Its span context travels with the accepted events in the
// journal record as an Origin, 24 bytes that only sampled requests pay for. Work on
// events of one request, such as a transaction of the worker or a call of a sink, is
// a child of the request's span. Work on events of several requests is a trace of
// its own with a link to each of them, because it belongs to no one of them.
//
// Spans have routes, statuses, counts, and ids of projects and requests. They never
// have keys, bodies, distinct ids or error texts.
//
// A nil *Tracing is off, and a nil *Span is a span that is not recorded: their
// methods do nothing and allocate nothing. Export runs in the background with a
// bounded queue. When the endpoint is away or slow, spans are dropped and counted;
// requests never wait.
//
// The exporter is in package otlp, because it brings gRPC into every binary that links it.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// Config configures the traces.
type Config struct {
	// URL is an OTLP endpoint over HTTP, such as http://localhost:4318/v1/traces;
	// empty turns tracing off.
	URL string `koanf:"url"`
	// Sample is the share of requests without a traceparent that start a trace, from
	// 0 to 1.
	Sample float64 `koanf:"sample"`
	// ClientTraces bounds the requests a second that are traced because they carry a
	// sampled traceparent; those beyond it are traced by Sample. 0 ignores the
	// sampling of clients.
	ClientTraces int `koanf:"client_traces"`
}

// DefaultConfig has tracing off.
func DefaultConfig() Config { return Config{Sample: 1, ClientTraces: 100} }

// Validate returns an error that names the wrong setting, or nil.
func (c Config) Validate() error {
	if !(c.Sample >= 0 && c.Sample <= 1) {
		return errors.New("sample must be from 0 to 1")
	}
	if c.ClientTraces < 0 {
		return errors.New("client_traces must be 0 or positive")
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("url must be one of http or https, not %q", c.URL)
	}
	if u.User != nil {
		return errors.New("url must have no user and password: set OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// Tracing starts spans. It is safe for concurrent use.
type Tracing struct {
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	threshold uint64 // random numbers below it are sampled
	clients   *rate.Limiter
}

// instrumentation is the name of the tracer in spans.
const instrumentation = "github.com/guidonhq/guidon"

// New returns what records spans and passes them to an exporter: that of package
// otlp, or one of a test. reg may be nil for no metrics.
func New(cfg Config, version string, out sdktrace.SpanExporter, reg prometheus.Registerer) *Tracing {
	t := &Tracing{threshold: thresholdOf(cfg.Sample), clients: rate.NewLimiter(rate.Limit(cfg.ClientTraces), cfg.ClientTraces)}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(newQueue(out, reg)), sdktrace.WithSampler(sampler{sdktrace.TraceIDRatioBased(cfg.Sample)}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "guidon"), attribute.String("service.version", version))),
	)
	t.tracer = t.provider.Tracer(instrumentation)
	return t
}

func thresholdOf(sample float64) uint64 {
	if sample >= 1 {
		return math.MaxUint64
	}
	return uint64(sample * math.MaxUint64)
}

// Provider returns the provider for libraries that record spans of their own; nil
// when tracing is off.
func (t *Tracing) Provider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// Shutdown exports the spans that wait, until ctx ends. Those that remain are dropped.
func (t *Tracing) Shutdown(ctx context.Context) {
	if t != nil {
		_ = t.provider.Shutdown(ctx) // spans that are not exported by then are dropped
	}
}
