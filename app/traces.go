package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/zap"
)

// TracesConfig configures the export of traces. Spans cover the server's calls
// of plugins.
type TracesConfig struct {
	// URL is an OTLP endpoint over HTTP, such as http://localhost:4318/v1/traces;
	// empty turns tracing off.
	URL string `koanf:"url"`
	// Sample is the share of traces to keep, from 0 to 1.
	Sample float64 `koanf:"sample"`
}

// Validate returns an error that names the wrong setting, or nil.
func (c TracesConfig) Validate() error {
	if c.Sample < 0 || c.Sample > 1 {
		return errors.New("sample must be from 0 to 1")
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("url must be one of http or https, not %q", c.URL)
	}
	return nil
}

// flushTimeout bounds the export of the last spans when the server stops.
const flushTimeout = 2 * time.Second

// newTracerProvider returns the exporter of spans, or nil when tracing is off.
// Spans are exported in the background and dropped when the endpoint is away.
func newTracerProvider(lc fx.Lifecycle, c TracesConfig, version string, log *zap.Logger) (trace.TracerProvider, error) {
	if c.URL == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(c.URL))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Named("traces").Warn("trace export failed", zap.Error(err)) }))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.Sample))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "guidon"), attribute.String("service.version", version))),
	)
	lc.Append(fx.StopHook(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // spans not exported by then are dropped
	}))
	return provider, nil
}
