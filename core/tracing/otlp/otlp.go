// Package otlp exports the spans of package tracing over OTLP.
package otlp

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/core/tracing"
)

// New returns nil for a configuration without a URL. It does not connect. reg may be
// nil for no metrics.
func New(cfg tracing.Config, version string, log *zap.Logger, reg prometheus.Registerer) (*tracing.Tracing, error) {
	if cfg.URL == "" {
		return nil, nil
	}
	out, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(cfg.URL))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(logFailures(log.Named("traces")))
	return tracing.New(cfg, version, out, reg), nil
}

// maxLogged bounds a logged error in bytes: it has the answer of the endpoint.
const maxLogged = 500

// logFailures logs the first of the failed exports of ten seconds: a loaded server has
// several a second.
func logFailures(log *zap.Logger) otel.ErrorHandlerFunc {
	once := &rate.Sometimes{Interval: 10 * time.Second}
	return func(err error) {
		once.Do(func() { log.Warn("trace export failed", zap.String("error", text.Truncate(err.Error(), maxLogged))) })
	}
}
