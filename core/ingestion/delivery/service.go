package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/pause"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/ingestion/delivery/window"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/tracing"
)

// Service runs a delivery for each sink and follows the changes of the set of
// sinks.
type Service struct {
	cfg         Config
	limits      event.Limits
	log         reader.Log
	pauses      *pause.Store
	deadLetters *deadletter.Store
	sinks       Sinks
	metrics     *Metrics
	deadMetrics *deadletter.Metrics
	logger      *zap.Logger
	service     retry.Service
	erased      Erased          // nil without erasures
	matchers    filter.Matchers // nil without operators of plugins
	tracing     *tracing.Tracing

	mu      sync.Mutex
	running map[string]*delivery
	ending  map[string]<-chan struct{} // deliveries that stop; closed at their end
	missing map[string]time.Time       // cursors without a sink, since when

	gates     *pause.Gates
	calls     *window.Processes
	active    *atomic.Int64          // services of this process that run
	elsewhere func(sink string) bool // nil: no other node has sinks
	lease     *lease                 // nil: of a journal that only this node reads
}

// NewService returns a service that has not started.
func NewService(cfg Config, limits event.Limits, log reader.Log, d *db.DB, sinks Sinks, m *Metrics, dm *deadletter.Metrics, logger *zap.Logger) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newService(&Service{
		cfg: cfg, limits: limits, log: log, pauses: pause.NewStore(d), deadLetters: deadletter.NewStore(d), sinks: sinks, metrics: m, deadMetrics: dm,
		logger: logger.Named("ingestion"), gates: &pause.Gates{}, calls: &window.Processes{}, active: &atomic.Int64{},
	}), nil
}

// newService returns a service with the settings and dependencies of d.
func newService(d *Service) *Service {
	return &Service{
		cfg: d.cfg, limits: d.limits, log: d.log, pauses: d.pauses, deadLetters: d.deadLetters, sinks: d.sinks, metrics: d.metrics,
		deadMetrics: d.deadMetrics, logger: d.logger, erased: d.erased, matchers: d.matchers, tracing: d.tracing, gates: d.gates, calls: d.calls, active: d.active,
		running: make(map[string]*delivery), ending: make(map[string]<-chan struct{}), missing: make(map[string]time.Time),
	}
}

// Trace records spans of calls, before Start. t may be nil.
func (d *Service) Trace(t *tracing.Tracing) { d.tracing = t }

// Start begins to deliver to the sinks there are and to those that are added.
// When it returns, the sinks there are have a cursor in the journal: events that
// are accepted from now on reach them.
func (d *Service) Start(ctx context.Context) error {
	if err := d.Register(func(reader string, from journal.Start) error {
		_, err := d.log.Register(ctx, reader, from)
		return err
	}); err != nil {
		d.logger.Warn("sinks not registered at the journal; retrying", zap.Error(err))
	}
	changed := d.sinks.Changed()
	d.service.Start()
	d.reconcile()
	d.service.Go(func(drainCtx, _ context.Context) { d.followSinks(drainCtx, changed) })
	if d.lease == nil { // else all partitions share the gates
		d.service.Go(func(drainCtx, _ context.Context) { d.FollowPauses(drainCtx) })
	}
	return nil
}

// Register calls register with the name of the reader of each sink there is, and where a
// new one begins. It returns the errors of all; the delivery to a sink that is not
// registered tries it again.
func (d *Service) Register(register func(reader string, from journal.Start) error) error {
	var errs []error
	for _, s := range d.sinks.Sinks() {
		if err := register(deadletter.SourceSink+s.Name(), d.cfg.start()); err != nil {
			errs = append(errs, fmt.Errorf("register the sink %s: %w", s.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// FollowPauses applies the pauses that other nodes set, until ctx ends. Start calls it.
func (d *Service) FollowPauses(ctx context.Context) { d.pauses.Follow(ctx, d.gates.All) }

// Stop lets the calls at hand end, asks sinks to flush what they staged, and
// waits; when ctx ends first the calls are given up. Events that were not
// confirmed are sent again after the next start.
func (d *Service) Stop(ctx context.Context) error { return d.service.Stop(ctx) }

// followSinks follows the changes of the set of sinks.
func (d *Service) followSinks(ctx context.Context, changed <-chan struct{}) {
	d.active.Add(1)
	defer d.active.Add(-1)
	forget := time.NewTicker(max(min(d.cfg.ForgetAfter/4, time.Minute), 10*time.Millisecond))
	defer forget.Stop()
	for {
		select {
		case <-changed:
			changed = d.sinks.Changed()
			d.reconcile()
		case <-forget.C:
			d.forgetRemoved(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// reconcile starts deliveries for new sinks and stops those of sinks that were
// removed or replaced.
func (d *Service) reconcile() {
	wanted := make(map[string]Sink)
	for _, s := range d.sinks.Sinks() {
		wanted[s.Name()] = s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease.isLost() {
		return
	}
	for name, old := range d.running {
		if wanted[name] != old.sink {
			old.stop()
			delete(d.running, name)
			d.ending[name] = old.ended
		}
	}
	for name, s := range wanted {
		if d.running[name] == nil {
			d.startDelivery(s, d.ending[name])
			delete(d.ending, name)
		}
	}
}

// startDelivery starts the delivery to one sink, which waits for the end of the
// one before it.
func (d *Service) startDelivery(s Sink, after <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	del := d.newDelivery(s, stop, after)
	if d.service.Go(func(drainCtx, killCtx context.Context) {
		defer context.AfterFunc(drainCtx, stop)()
		del.run(ctx, killCtx)
	}) {
		d.running[s.Name()] = del
	}
}

func (d *Service) newDelivery(s Sink, stop context.CancelFunc, after <-chan struct{}) *delivery {
	t := &target{
		sink: s, lease: d.lease, cfg: d.cfg, limits: d.limits, metrics: d.metrics, deadMetrics: d.deadMetrics,
		logger: d.logger.With(zap.String("sink", s.Name())), matchers: d.matchers, tracing: d.tracing, active: d.active,
	}
	t.stats.SetState(status.Starting)
	sched := &scheduler{}
	send := &sender{target: t, gate: d.gates.Of(s.Name()), calls: d.calls.Of(processOf(s)), deadLetters: d.deadLetters, pauses: d.pauses, source: deadletter.SourceSink + s.Name(), erased: d.erased, doubtfulTime: doubtfulTime}
	return &delivery{
		target: t, sched: sched, sender: send, staging: &staging{target: t, log: d.log, sched: sched, sender: send},
		cursors: &cursors{target: t, log: d.log, window: &send.window, deadLetters: d.deadLetters},
		stop:    stop, ended: make(chan struct{}), after: after, results: make(chan sendResult), replays: make(chan *replayRequest),
	}
}

// find returns the delivery to a sink, nil when there is none.
func (d *Service) find(sink string) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[sink]
}

// forgetRemoved removes the cursors of sinks that were removed from the
// configuration long enough ago.
func (d *Service) forgetRemoved(ctx context.Context) {
	stats, err := d.log.Stats(ctx)
	if err != nil {
		return // the journal logs its failures itself
	}
	for _, name := range d.removedCursors(stats.Readers) {
		if err := d.log.Unregister(ctx, name); err != nil {
			d.logger.Warn("cursor of a removed sink not deleted", zap.String("reader", name), zap.Error(err))
			continue
		}
		d.logger.Warn("cursor of a removed sink deleted", zap.String("reader", name))
	}
}

// removedCursors lists the cursors whose sinks were removed long enough ago.
func (d *Service) removedCursors(readers []journal.ReaderStats) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range readers {
		name, ok := strings.CutPrefix(strings.TrimPrefix(r.Name, status.HistoricalPrefix), deadletter.SourceSink)
		if !ok {
			continue
		}
		since, waiting := d.missing[r.Name]
		switch {
		case d.running[name] != nil, d.elsewhere != nil && d.elsewhere(name):
			delete(d.missing, r.Name)
		case !waiting:
			d.missing[r.Name] = time.Now()
		case time.Since(since) >= d.cfg.ForgetAfter:
			names = append(names, r.Name)
			delete(d.missing, r.Name)
		}
	}
	return names
}
