package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/tracing/otlp"
)

// flushTimeout bounds the export of the last spans when the server stops.
const flushTimeout = 2 * time.Second

// newTracing returns what records spans, or nil when tracing is off. It stops after
// everything that uses it.
func newTracing(lc fx.Lifecycle, c tracing.Config, version string, log *zap.Logger, reg prometheus.Registerer) (*tracing.Tracing, error) {
	t, err := otlp.New(c, version, log, reg)
	if t != nil {
		lc.Append(fx.StopHook(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, flushTimeout)
			defer cancel()
			t.Shutdown(ctx)
		}))
	}
	return t, err
}
