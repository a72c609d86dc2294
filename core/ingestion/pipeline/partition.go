package pipeline

import (
	"context"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/reader"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/sdk"
)

// maxTransactions bounds the transactions that a process runs side by side on
// PostgreSQL. SQLite has one writer.
const maxTransactions = 4

func newSlots(d *db.DB) chan struct{} {
	if d.Postgres() {
		return make(chan struct{}, maxTransactions)
	}
	return make(chan struct{}, 1)
}

// Partition is a part of a log that one node at a time processes.
type Partition struct {
	Number int
	// Token is that of the lease, above 0.
	Token int64
	// Log has the records and the cursors in the log.
	Log reader.Log
	// Erased knows the erasures by the numbers of the partition. nil is Erased of the
	// worker.
	Erased Erased
	// Fenced is called once when the lease has ended; see Fence.
	Fenced func()
}

// ForPartition returns a worker for a partition that has not started. It has the
// stages, settings and metrics of w, and cursors of its own. Transactions of several
// partitions run side by side, at most four a process on PostgreSQL and one on SQLite.
// ShareDatabase must be called before.
func (w *Worker) ForPartition(p Partition) *Worker {
	runner := &stageRunner{
		stages: w.stages, deduplicator: w.deduplicator, db: w.db, warnings: w.warnings, timeout: w.timeout, erased: w.erased,
		running: make(chan struct{}, 1), slots: w.slots, keys: warning.HourlyKeys{},
	}
	if p.Erased != nil {
		runner.erased = p.Erased
	}
	out := &Worker{
		stageRunner: runner, cfg: w.cfg, limits: w.limits, log: p.Log, store: w.store, deadLetters: w.deadLetters,
		metrics: w.metrics, deadMetrics: w.deadMetrics, logger: w.logger.With(zap.Int("partition", p.Number)), tracing: w.tracing,
		recovered: make(chan struct{}), active: w.active,
	}
	out.suffix = "@" + strconv.Itoa(p.Number)
	out.Fence(p.Token, p.Fenced)
	out.live = newLane(out, LiveReader, false)
	out.historical = newLane(out, HistoricalReader, true)
	return out
}

// ShareDatabase prepares the stages for transactions that run side by side, on this
// node and on others. Readers of the event store count up to a row, so rows must be
// committed in the order of their numbers: on PostgreSQL the stage of the event store
// is the last one and holds a lock of the whole database until the commit. It must be
// called before Start.
func (w *Worker) ShareDatabase() {
	if !w.db.Postgres() {
		return
	}
	stages := slices.Clone(w.stages)
	slices.SortStableFunc(stages, func(a, b Stage) int { return rankStage(a) - rankStage(b) })
	for i, s := range stages {
		if e, ok := s.(eventStage); ok {
			stages[i] = orderedStage{e, w.store}
		}
	}
	w.stages = stages
}

// rankStage is 1 for the stage that gives rows their numbers, 0 for others.
func rankStage(s Stage) int {
	switch s.(type) {
	case eventStage, orderedStage:
		return 1
	}
	return 0
}

// orderedStage is the stage of the event store in transactions that run side by side.
type orderedStage struct {
	eventStage
	store *store
}

// Process waits for the transactions that have taken numbers.
func (s orderedStage) Process(ctx context.Context, batch []*sdk.Event) error {
	if err := s.store.lockRowNumbers(ctx); err != nil {
		return err
	}
	return s.eventStage.Process(ctx, batch)
}
