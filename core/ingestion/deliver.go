package ingestion

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

// Sink is an instance of a sink plugin. Its methods may be called from many
// goroutines.
//
// A Sink may also have Resume(committedThrough uint64), which is called once
// before anything else, and Session() uint64, which counts how often the plugin
// was opened: what was staged in one session is gone in the next. Without it
// nothing stays staged from one call to the next.
type Sink interface {
	// Name is the instance's name; it names the cursor.
	Name() string
	// Properties is how the sink wants to be fed.
	Properties() sdk.SinkProperties
	// Ready blocks until the sink can be called, or ctx ends.
	Ready(ctx context.Context) error
	// Write hands over a batch. An error means that nobody knows what became
	// of it.
	Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error)
	// Flush asks the sink to make what it staged safe, up to a sequence number.
	Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error)
}

// Sinks tells which sinks there are.
type Sinks interface {
	// Sinks returns the configured sinks, in whatever state they are.
	Sinks() []Sink
	// Changed returns a channel that is closed when the answer of Sinks changes.
	Changed() <-chan struct{}
}

// Deliver hands accepted events to the sinks. Each sink has a cursor of its own
// in the journal and a goroutine of its own, so none waits for another, for the
// worker or, while all is well, for the database. A sink gets every event at
// least once, under stable uuids and batch ids, those of one distinct id in
// order; what it refuses for good becomes a dead letter.
type Deliver struct {
	cfg     Config
	log     Log
	store   *store
	sinks   Sinks
	metrics *Metrics
	logger  *zap.Logger

	stop context.CancelFunc
	kill context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	running map[string]*delivery
	ending  map[string]<-chan struct{} // told to stop, and closed when they have
	missing map[string]time.Time       // readers without a sink, since when
	gates   map[string]*pauseGate      // by name of the sink
}

// NewDeliver returns a Deliver that has not started.
func NewDeliver(cfg Config, log Log, d *db.DB, sinks Sinks, m *Metrics, logger *zap.Logger) (*Deliver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Deliver{
		cfg: cfg, log: log, store: &store{d}, sinks: sinks, metrics: m, logger: logger.Named("ingestion"),
		running: make(map[string]*delivery), ending: make(map[string]<-chan struct{}), missing: make(map[string]time.Time),
		gates: make(map[string]*pauseGate),
	}, nil
}

// Start begins to deliver to the sinks there are, and to those there will be.
// When it returns, the sinks there are have their place in the journal: what is
// accepted from now on reaches them.
func (d *Deliver) Start(ctx context.Context) error {
	for _, s := range d.sinks.Sinks() {
		if _, err := d.log.Register(ctx, sourceSink+s.Name(), d.cfg.Deliver.start()); err != nil {
			d.logger.Warn("a sink has no place in the journal yet; trying again", zap.String("sink", s.Name()), zap.Error(err))
		}
	}
	running, stop := context.WithCancel(context.Background())
	living, kill := context.WithCancel(context.Background())
	d.stop, d.kill = stop, kill
	changed := d.sinks.Changed()
	d.reconcile(running, living)
	d.done.Go(func() { d.manage(running, living, changed) })
	return nil
}

// Stop lets the calls at hand end, asks sinks to flush what they staged, and
// waits; when ctx ends first the calls are given up. What was not confirmed is
// sent again after the next start.
func (d *Deliver) Stop(ctx context.Context) error {
	if d.stop == nil {
		return nil
	}
	d.stop()
	finished := make(chan struct{})
	go func() {
		d.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		d.kill()
		<-finished
	}
	d.kill()
	return nil
}

// manage follows the changes of the set of sinks.
func (d *Deliver) manage(running, living context.Context, changed <-chan struct{}) {
	look := time.NewTicker(max(min(d.cfg.Deliver.ForgetAfter/4, time.Minute), 10*time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-changed:
			changed = d.sinks.Changed()
			d.reconcile(running, living)
		case <-look.C:
			d.forget(running)
		case <-running.Done():
			return
		}
	}
}

// reconcile starts deliveries for new sinks and stops those of sinks that are
// gone or were replaced.
func (d *Deliver) reconcile(running, living context.Context) {
	wanted := make(map[string]Sink)
	for _, s := range d.sinks.Sinks() {
		wanted[s.Name()] = s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, old := range d.running {
		if wanted[name] != old.sink {
			old.stop()
			delete(d.running, name)
			d.ending[name] = old.ended
		}
	}
	for name, s := range wanted {
		if d.running[name] == nil {
			d.running[name] = d.launch(running, living, s, d.ending[name])
			delete(d.ending, name)
		}
	}
}

// launch starts the delivery to one sink, which waits for the one before it.
func (d *Deliver) launch(running, living context.Context, s Sink, after <-chan struct{}) *delivery {
	ctx, stop := context.WithCancel(running)
	gate := d.gates[s.Name()]
	if gate == nil {
		gate = newPauseGate()
		d.gates[s.Name()] = gate
	}
	del := &delivery{
		cfg: d.cfg, log: d.log, store: d.store, sink: s, metrics: d.metrics, living: living, running: ctx, stop: stop,
		gate: gate, logger: d.logger.With(zap.String("sink", s.Name())), ended: make(chan struct{}), after: after, replays: make(chan *replay),
	}
	del.tally.state = "starting"
	del.tally.since = time.Now()
	d.done.Go(del.run)
	return del
}

// forget lets go of the journal for sinks that were removed from the config
// long enough ago.
func (d *Deliver) forget(ctx context.Context) {
	stats, err := d.log.Stats(ctx)
	if err != nil {
		return // the journal tells of its troubles itself
	}
	for _, name := range d.lost(stats.Readers) {
		if err := d.log.Unregister(ctx, name); err != nil {
			d.logger.Warn("cannot forget a sink that was removed", zap.String("reader", name), zap.Error(err))
			continue
		}
		d.logger.Warn("forgot the place of a sink that was removed", zap.String("reader", name))
	}
}

// lost lists the readers of sinks that have been gone for long enough.
func (d *Deliver) lost(readers []journal.ReaderStats) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range readers {
		name, ok := strings.CutPrefix(strings.TrimPrefix(r.Name, sourcePast), sourceSink)
		if !ok {
			continue
		}
		since, waiting := d.missing[r.Name]
		switch {
		case d.running[name] != nil:
			delete(d.missing, r.Name)
		case !waiting:
			d.missing[r.Name] = time.Now()
		case time.Since(since) >= d.cfg.Deliver.ForgetAfter:
			names = append(names, r.Name)
			delete(d.missing, r.Name)
		}
	}
	return names
}

// SinkStatus is how the delivery to a sink is doing. The counts are since the
// start of the process.
type SinkStatus struct {
	Sink string `json:"sink"`
	// State is starting, idle, waiting (for the plugin), delivering, retrying,
	// throttled, misconfigured, paused, not_flushing or waiting_for_database.
	State       string     `json:"state"`
	Since       time.Time  `json:"since"`
	Paused      *Pause     `json:"paused,omitempty"`
	Delivered   uint64     `json:"delivered"`
	DeadLetters uint64     `json:"dead_letters"`
	Filtered    uint64     `json:"filtered"` // not for this sink, as its config says
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// InFlight is how many batches are on the way, Window how many may be.
	InFlight int `json:"in_flight"`
	Window   int `json:"window"`
	// StagedEvents were accepted by the sink and are not safe yet.
	StagedEvents int        `json:"staged_events"`
	StagedBytes  int        `json:"staged_bytes"`
	StagedSince  *time.Time `json:"staged_since,omitempty"`
	// CommittedThrough is the sequence number up to which everything is safe.
	CommittedThrough uint64 `json:"committed_through"`
	// LagRecords is how many requests it is behind, OldestAt since when.
	LagRecords int64      `json:"lag_records"`
	LagBytes   int64      `json:"lag_bytes"`
	OldestAt   *time.Time `json:"oldest_at,omitempty"`
	// Historical is how far the delivery of imports is behind, while there is any.
	Historical *HistoricalLag `json:"historical,omitempty"`
}

// held reports whether something keeps the sink from getting on.
func (s *SinkStatus) held() bool {
	switch s.State {
	case "idle", "delivering":
		return false
	}
	return true
}

// HistoricalLag is how far the delivery of imports is behind. It counts all
// requests of the stretch of the journal that imports are looked for in.
type HistoricalLag struct {
	LagRecords int64      `json:"lag_records"`
	LagBytes   int64      `json:"lag_bytes"`
	OldestAt   *time.Time `json:"oldest_at,omitempty"`
}

// Status tells how the deliveries are doing, by name of the sink.
func (d *Deliver) Status(ctx context.Context) ([]SinkStatus, error) {
	stats, err := d.log.Stats(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []SinkStatus
	for _, name := range slices.Sorted(maps.Keys(d.running)) {
		del := d.running[name]
		s := del.tally.status(name)
		s.Window = del.size.now()
		if s.Paused, _, _ = del.gate.get(); s.Paused != nil {
			s.State, s.Since = "paused", s.Paused.At
		}
		for _, r := range stats.Readers {
			var oldest *time.Time
			if !r.OldestAt.IsZero() {
				oldest = &r.OldestAt
			}
			switch r.Name {
			case sourceSink + name:
				s.LagRecords, s.LagBytes, s.OldestAt = r.Lag, r.Bytes, oldest
				s.CommittedThrough = max(s.CommittedThrough, r.Position.Count)
			case sourcePast + sourceSink + name:
				s.Historical = &HistoricalLag{r.Lag, r.Bytes, oldest}
				s.CommittedThrough = max(s.CommittedThrough, r.Position.Count)
			}
		}
		out = append(out, s)
	}
	return out, nil
}
