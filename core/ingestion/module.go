package ingestion

import (
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/config/live"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog"
	"github.com/guidonhq/guidon/core/ingestion/ai"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/delivery/bypartition"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/otlp"
	"github.com/guidonhq/guidon/core/ingestion/pipeline"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/ingestion/replay"
	"github.com/guidonhq/guidon/core/ingestion/trace"
	"github.com/guidonhq/guidon/core/ingestion/unit"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web"
)

// Module takes events in, processes them and delivers them while the server
// runs. App binds the journal, the stages, the deduplicator and the sinks.
var Module = fx.Module("ingestion",
	fx.Provide(
		capture.NewMetrics, pipeline.NewMetrics, delivery.NewMetrics, deadletter.NewMetrics,
		func(c Config) (event.Limits, pipeline.Config, delivery.Config) {
			return c.Limits, c.Worker, c.Deliver
		},
		newTracer, newCapture, newDeadLetters,
		started(newMeter, (*capture.Meter).Start, (*capture.Meter).Stop),
		newWorker, newProcessing,
		newDelivery, newDeliveries,
		started(newReplayer, (*replay.Replayer).Start, (*replay.Replayer).Stop),
		started(NewRetention, (*Retention).Start, (*Retention).Stop),
		route(func(h *capture.HTTP) web.Routes { return h }),
		route(func(m *capture.Meter) web.Routes { return capture.NewUsageHTTP(m) }),
		route(func(c Config, h *capture.HTTP) web.Routes { return otlp.NewHTTP(h, c.Limits.MaxEventBytes) }),
		route(func(c Config, h *capture.HTTP) web.Routes { return ai.NewHTTP(h, c.Limits.MaxEventBytes) }),
		route(func(d *db.DB) web.Routes { return warning.NewHTTP(d) }),
		route(func(s *deadletter.Service) web.Routes { return deadletter.NewHTTP(s) }),
		route(func(t *trace.Tracer) web.Routes { return trace.NewHTTP(t) }),
	),
	fx.Invoke(func(t *tracing.Tracing, w *pipeline.Worker, d *delivery.Service, _ *replay.Replayer, _ *Retention, _ Processing) {
		w.Trace(t)
		d.Trace(t)
	}),
)

// started provides a component that starts and stops with the server.
func started(constructor, start, stop any) any {
	return fx.Annotate(constructor, fx.OnStart(start), fx.OnStop(stop))
}

// route provides routes of the server.
func route(constructor any) any { return fx.Annotate(constructor, fx.ResultTags(`group:"routes"`)) }

// workerParts are the parameters of newWorker.
type workerParts struct {
	fx.In
	Config       pipeline.Config
	Limits       event.Limits
	Log          reader.Log
	Shared       eventlog.Log `optional:"true"` // in partitions, instead of Log; may be nil
	DB           *db.DB
	Stages       []pipeline.Stage
	Deduplicator pipeline.Deduplicator
	Metrics      *pipeline.Metrics
	DeadLetters  *deadletter.Metrics
	Logger       *zap.Logger
}

// newWorker returns the worker of the journal, which runs with the server. With a log in
// partitions it replays dead letters only.
func newWorker(lc fx.Lifecycle, p workerParts) (*pipeline.Worker, error) {
	w, err := pipeline.NewWorker(p.Config, p.Limits, p.Log, p.DB, p.Stages, p.Deduplicator, p.Metrics, p.DeadLetters, p.Logger)
	if err == nil && p.Shared == nil {
		lc.Append(fx.StartStopHook(w.Start, w.Stop))
	}
	return w, err
}

// deliveryParts are the parameters of newDelivery.
type deliveryParts struct {
	fx.In
	Config      delivery.Config
	Limits      event.Limits
	Log         reader.Log
	Shared      eventlog.Log `optional:"true"` // in partitions, instead of Log; may be nil
	DB          *db.DB
	Sinks       delivery.Sinks
	Metrics     *delivery.Metrics
	DeadLetters *deadletter.Metrics
	Logger      *zap.Logger
}

// newDelivery returns the deliveries of the journal, which run with the server. With a
// log in partitions they are the model of those of the partitions.
func newDelivery(lc fx.Lifecycle, p deliveryParts) (*delivery.Service, error) {
	d, err := delivery.NewService(p.Config, p.Limits, p.Log, p.DB, p.Sinks, p.Metrics, p.DeadLetters, p.Logger)
	if err == nil && p.Shared == nil {
		lc.Append(fx.StartStopHook(d.Start, d.Stop))
	}
	return d, err
}

// partitionedParts are the parameters of newDeliveries.
type partitionedParts struct {
	fx.In
	Log     eventlog.Log `optional:"true"`
	Service *delivery.Service
	Sinks   bypartition.Sinks `optional:"true"`
	Shares  cluster.Shares    `optional:"true"`
	Logger  *zap.Logger
}

// newDeliveries returns what operators, replays and traces use, and the deliveries of a
// log in partitions, nil without such a log.
func newDeliveries(lc fx.Lifecycle, p partitionedParts) (delivery.Deliveries, *bypartition.Set) {
	if p.Log == nil {
		return p.Service, nil
	}
	set := bypartition.NewSet(bypartition.Dependencies{
		Log: p.Log, Service: p.Service, Sinks: p.Sinks, Nodes: p.Shares, Replays: cluster.JobGroup(replay.Job), Logger: p.Logger.Named("ingestion"),
		Holds: func(partition int, token int64) bool { return p.Shares.Holds(unit.Group, partition, token) },
	})
	lc.Append(fx.StartStopHook(set.Open, set.Close))
	return set, set
}

// Processing is the processing of events on this server: the worker of the journal, or
// the units of the partitions that this server owns.
type Processing interface {
	Progress() pipeline.Progress
	HistoricalProgress() pipeline.Progress
}

// processingParts are the parameters of newProcessing.
type processingParts struct {
	fx.In
	Worker    *pipeline.Worker
	Followers []pipeline.Follower `group:"followers"`
	Log       eventlog.Log        `optional:"true"`
	Shares    cluster.Shares      `optional:"true"`
	Erasures  *erasure.Service    `optional:"true"`
	Delivery  *bypartition.Set    // nil without partitions
	Logger    *zap.Logger
}

// newProcessing returns the worker after it was given its followers, or the units of a
// log in partitions.
func newProcessing(lc fx.Lifecycle, p processingParts) Processing {
	if p.Log == nil {
		for _, f := range p.Followers {
			runner := pipeline.NewFollowerRunner(p.Worker, f)
			lc.Append(fx.StartStopHook(runner.Start, runner.Stop))
		}
		return p.Worker
	}
	var reachable func() bool
	if l, ok := p.Log.(interface{ Reachable() bool }); ok {
		reachable = l.Reachable
	}
	set := unit.NewSet(unit.Dependencies{
		Reachable: reachable, NeedLog: []string{cluster.JobGroup(erasure.Job)},
		Log: p.Log, Shares: p.Shares, Worker: p.Worker, Followers: p.Followers, Parts: []unit.Part{p.Delivery}, Logger: p.Logger,
		Erased: func(partition int) pipeline.Erased { return p.Erasures.Partition(partition) },
	})
	lc.Append(fx.StartStopHook(set.Start, set.Stop))
	return set
}

// optional are the bindings that a trace does without.
type optional struct {
	fx.In
	Events  trace.EventReader `optional:"true"`
	Actions trace.Actions     `optional:"true"`
	Log     eventlog.Log      `optional:"true"` // in partitions
}

func newTracer(cfg Config, d *db.DB, log reader.Log, o optional, w *pipeline.Worker, p Processing, del delivery.Deliveries, sinks *delivery.Service) *trace.Tracer {
	t := trace.NewTracer(cfg.Limits, d, log, o.Events).WithActions(o.Actions).WithReaders(w, del).WithFilters(sinks.SkipReason)
	if set, ok := p.(*unit.Set); ok {
		t.WithPartitions(o.Log, set.Worker)
	}
	return t
}

// clientFacts are the bindings by which capture learns more about a client; nil
// ones are off.
type clientFacts struct {
	fx.In
	Locator  capture.Locator  `optional:"true"`
	Visitors capture.Visitors `optional:"true"`
	Log      capture.Log      `optional:"true"` // in partitions, instead of the journal
}

func newCapture(cfg Config, j capture.Appender, m *capture.Metrics, meter *capture.Meter, f clientFacts, log *zap.Logger) *capture.HTTP {
	h := capture.NewHTTP(j, m, log)
	if f.Log != nil {
		h.WithLog(f.Log)
	}
	return h.WithLimits(cfg.Limits).WithBudget(cfg.AcceptBytes).WithMaxItems(cfg.MaxBatchEvents).WithMeter(meter).
		WithLocator(f.Locator).WithVisitors(f.Visitors)
}

func newMeter(cfg *live.Value[Config], d *db.DB, metrics *capture.Metrics, log *zap.Logger) *capture.Meter {
	meter := capture.NewMeter(cfg.Load().Quota, d, metrics, log, nil)
	cfg.Follow(func(c *Config) { meter.SetQuota(c.Quota) })
	return meter
}

func newDeadLetters(cfg Config, d *db.DB, r *replay.Replayer) *deadletter.Service {
	return deadletter.NewService(d, cfg.Limits, r.Wake)
}

func newReplayer(cfg Config, d *db.DB, w *pipeline.Worker, del delivery.Deliveries, m *deadletter.Metrics, log *zap.Logger) *replay.Replayer {
	c := replay.Config{PollMax: cfg.Worker.RetryMax, RetryMin: cfg.Deliver.RetryMin, RetryMax: cfg.Deliver.RetryMax}
	return replay.NewReplayer(c, d, w, del, m, log)
}
