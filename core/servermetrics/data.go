package servermetrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

const (
	readInterval = time.Minute
	readTimeout  = 10 * time.Second
	// readShare is how many times longer than a reading the pause after it is.
	readShare = 100
)

// Source reads figures of the stored data. Its functions may be slow.
type Source struct {
	// Persons returns the number of persons of all projects, which may be an estimate.
	Persons func(ctx context.Context) (int64, error)
	// OldestEvent returns the time of the oldest stored event, zero without events.
	OldestEvent func(ctx context.Context) (time.Time, error)
}

// Data publishes figures of the stored data.
type Data struct {
	source  Source
	log     *zap.Logger
	service retry.Service
	latest  atomic.Pointer[figures]
}

type figures struct {
	persons int64
	oldest  time.Time
}

// NewData returns a Data that has not started, registered at reg.
func NewData(source Source, log *zap.Logger, reg prometheus.Registerer) (*Data, error) {
	d := &Data{source: source, log: log.Named("metrics")}
	return d, reg.Register(d)
}

// Start begins to read the figures. It returns without waiting for them.
func (d *Data) Start() {
	d.service.Start()
	d.service.Go(func(ctx, _ context.Context) { d.run(ctx) })
}

// Stop ends the reading.
func (d *Data) Stop(ctx context.Context) error { return d.service.Stop(ctx) }

func (d *Data) run(ctx context.Context) {
	for {
		begin := time.Now()
		if err := d.read(ctx); err != nil && ctx.Err() == nil {
			d.log.Debug("stored data metrics read failed", zap.Error(err))
		}
		if !retry.Sleep(ctx, max(readInterval, readShare*time.Since(begin))) {
			return
		}
	}
}

// read reads the figures once.
func (d *Data) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	persons, err := d.source.Persons(ctx)
	if err != nil {
		return err
	}
	oldest, err := d.source.OldestEvent(ctx)
	if err != nil {
		return err
	}
	d.latest.Store(&figures{persons, oldest})
	return nil
}

var (
	personsDesc = prometheus.NewDesc("guidon_persons", "Persons of all projects as of the last minutes; an estimate with Postgres.", nil, nil)
	oldestDesc  = prometheus.NewDesc("guidon_events_oldest_timestamp_seconds", "Time of the oldest stored event; absent without events.", nil, nil)
)

// Describe implements prometheus.Collector.
func (d *Data) Describe(ch chan<- *prometheus.Desc) { ch <- personsDesc; ch <- oldestDesc }

// Collect implements prometheus.Collector.
func (d *Data) Collect(ch chan<- prometheus.Metric) {
	f := d.latest.Load()
	if f == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(personsDesc, prometheus.GaugeValue, float64(f.persons))
	if !f.oldest.IsZero() {
		ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, float64(f.oldest.UnixMicro())/1e6)
	}
}
