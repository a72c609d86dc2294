package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/tracing"
)

// The worker's readers, in the journal and in the database: events that are sent
// as they happen, and imports.
const (
	LiveReader       = "worker"
	HistoricalReader = "worker/historical"
)

// Worker processes the events of the journal in two lanes. Its cursors in the
// database are the truth; those in the journal only bound what it keeps.
type Worker struct {
	*stageRunner

	cfg         Config
	limits      event.Limits
	log         reader.Log
	store       *store
	deadLetters *deadletter.Store
	metrics     *Metrics
	deadMetrics *deadletter.Metrics
	logger      *zap.Logger
	tracing     *tracing.Tracing // nil: off

	journalID        string
	live, historical *lane
	recovered        chan struct{} // closed when the erasures of the journal are known
	recoverOnce      sync.Once
	active           *atomic.Int64 // workers of this process that run
	fence
	service retry.Service
}

// Status is the state of a lane.
type Status struct {
	// Position is how far the lane is in the journal.
	Position journal.Position
	// Read counts the events read; those beyond Position wait to be processed.
	Read uint64
	// Waiting is why the lane makes no progress; nil while it does.
	Waiting error
	// Since is when Waiting began.
	Since time.Time
}

// NewWorker returns a worker that has not started. It calls the stages in the
// order given. deduplicator may be nil: then only duplicates within a batch are
// removed.
func NewWorker(cfg Config, limits event.Limits, log reader.Log, d *db.DB, stages []Stage, deduplicator Deduplicator,
	m *Metrics, dm *deadletter.Metrics, logger *zap.Logger,
) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	w := &Worker{
		stageRunner: &stageRunner{
			running: make(chan struct{}, 1), slots: newSlots(d),
			stages: stages, deduplicator: deduplicator, db: d, warnings: warning.NewStore(d), timeout: cfg.Timeout,
		},
		cfg: cfg, limits: limits, log: log, store: &store{d}, deadLetters: deadletter.NewStore(d), metrics: m, deadMetrics: dm,
		logger: logger.Named("ingestion"), recovered: make(chan struct{}), active: &atomic.Int64{},
	}
	w.live = newLane(w, LiveReader, false)
	w.historical = newLane(w, HistoricalReader, true)
	return w, nil
}

// Start registers the worker's readers at the journal and begins to process.
// Without a database it starts, too, and waits for one.
func (w *Worker) Start(ctx context.Context) error {
	for _, l := range []*lane{w.live, w.historical} {
		at, err := w.log.Register(ctx, l.name, journal.Begin)
		if err != nil {
			return fmt.Errorf("register the worker at the journal: %w", err)
		}
		l.registered = at
	}
	stats, err := w.log.Stats(ctx)
	if err != nil {
		return fmt.Errorf("read the state of the journal: %w", err)
	}
	w.journalID = stats.ID
	w.service.Start()
	w.service.Go(func(drainCtx, killCtx context.Context) {
		w.active.Add(1)
		defer w.active.Add(-1)
		w.live.run(drainCtx, killCtx)
	})
	w.service.Go(w.historical.run)
	w.service.Go(func(drainCtx, _ context.Context) { w.monitorLag(drainCtx) })
	return nil
}

// Trace records spans of batches, of the worker and of followers, before Start. t may
// be nil.
func (w *Worker) Trace(t *tracing.Tracing) { w.tracing = t }

// startSpan starts the span of work on a batch with traced requests.
func (w *Worker) startSpan(ctx context.Context, name string, b *reader.Batch) (context.Context, *tracing.Span) {
	if w.tracing == nil {
		return ctx, nil
	}
	ctx, span := w.tracing.StartBatch(ctx, name, b.Spans())
	span.Int("guidon.events", int64(len(b.Events)))
	return ctx, span
}

// Stop finishes the batch at hand and waits for it. When ctx ends first, the
// batch is rolled back and processed after the next start.
func (w *Worker) Stop(ctx context.Context) error { return w.service.Stop(ctx) }

// Status returns the state of the live lane.
func (w *Worker) Status() Status { return w.live.currentStatus() }

// HistoricalStatus returns the state of the lane of imports.
func (w *Worker) HistoricalStatus() Status { return w.historical.currentStatus() }

// Progress returns the progress of the live lane, as of a moment ago.
func (w *Worker) Progress() Progress { return w.live.lag.progress() }

// HistoricalProgress returns the progress of the lane of imports.
func (w *Worker) HistoricalProgress() Progress { return w.historical.lag.progress() }
