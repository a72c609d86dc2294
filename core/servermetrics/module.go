package servermetrics

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"
)

// Info describes the server.
type Info struct {
	// Version of the binary.
	Version string
	// DataDir is the directory whose file system is measured.
	DataDir string
}

// Module registers the metrics of this package. It needs an Info and a Source.
var Module = fx.Module("servermetrics", fx.Invoke(provide))

func provide(lc fx.Lifecycle, info Info, source Source, log *zap.Logger, reg prometheus.Registerer) error {
	d, err := NewData(source, log, reg)
	if err := errors.Join(err, RegisterBuild(reg, info.Version), RegisterDisk(reg, info.DataDir)); err != nil {
		return err
	}
	lc.Append(fx.StartStopHook(d.Start, func(ctx context.Context) error { return d.Stop(ctx) }))
	return nil
}
