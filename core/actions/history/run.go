package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history/background"
	"github.com/guidonhq/guidon/core/events"
)

// run is one count of one action. Requests for the same days share it.
type run struct {
	plan     *plan
	from, to int64 // days, both included
	progress background.Counter
	done     chan struct{}
	// Set once done is closed:
	counts *actionCounts
	err    error
}

// joinRun returns the run that covers these days, and starts one if there is
// none. A new run waits for a running one that covers fewer days.
func (h *Service) joinRun(a *Definition, p *plan, from, to int64) (*run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.runs[a.ID]
	if before != nil && before.plan.fingerprint == p.fingerprint && before.from <= from && before.to >= to {
		return before, nil
	}
	r := &run{plan: p, from: from, to: to, done: make(chan struct{})}
	if !h.workers.Start(func(ctx context.Context) { h.execute(ctx, r, before, a.ID, a.ProjectID) }) {
		return nil, background.ErrStopping
	}
	h.runs[a.ID] = r
	return r, nil
}

// execute waits for a slot and for the run before it, and counts.
func (h *Service) execute(ctx context.Context, r, before *run, actionID, projectID int64) {
	began := time.Now()
	if before != nil {
		<-before.done
	}
	r.err = h.workers.WithSlot(r.plan.exact, func() error { return h.countWithRetry(ctx, r, actionID, projectID) })
	result := "done"
	if r.err != nil {
		result = "failed"
		if ctx.Err() != nil {
			result, r.err = "stopped", background.ErrStopping
		} else {
			h.reader.log.Error("action count failed", zap.Int64("action_id", actionID), zap.Error(r.err))
		}
	}
	h.metrics.runs.WithLabelValues(result).Inc()
	h.metrics.duration.Observe(time.Since(began).Seconds())
	h.mu.Lock()
	if h.runs[actionID] == r {
		delete(h.runs, actionID)
	}
	h.mu.Unlock()
	close(r.done)
}

// maxAttempts is how often a run starts again because another node counted the
// same action.
const maxAttempts = 20

// countWithRetry counts the missing days. If another node stored its counts
// first, it starts again from those.
func (h *Service) countWithRetry(ctx context.Context, r *run, actionID, projectID int64) (err error) {
	for range maxAttempts {
		b := &runState{service: h, run: r, actionID: actionID, projectID: projectID}
		b.counter = newCounter(h.reader, projectID, actionID, r.plan, time.Now())
		if err = b.update(ctx); !errors.Is(err, errConflict) {
			r.counts = b.counts
			return err
		}
	}
	return err
}

// runState are the counts of a run in progress.
type runState struct {
	service             *Service
	run                 *run
	counter             *counter
	actionID, projectID int64
	counts              *actionCounts
	recount             bool  // all stored counts are stale
	revision            int64 // of the cohorts
}

// update counts the missing days, the newest first, and then adds the events
// stored since to all days.
func (b *runState) update(ctx context.Context) error {
	st, err := b.service.reader.events.Checkpoint(ctx, b.projectID)
	if err != nil {
		return err
	}
	if b.revision, err = b.service.freshness.revision(ctx, b.projectID, b.run.plan); err != nil {
		return err
	}
	if b.counts, err = b.service.store.load(ctx, b.actionID); err != nil {
		return err
	}
	b.prepare(st)
	saved, savedAt, dirty := b.counts.lastRow, b.counts.calculatedAt, b.counts.serial == 0 || b.counts.reset
	missing := b.counts.missingDays(b.run.from, b.run.to, b.daysPerQuery())
	if err := b.countMissing(ctx, missing); err != nil {
		return err
	}
	dirty = dirty || len(missing) > 0
	if b.recount {
		// Events that were erased during the count may be in some days. The old
		// number of erasures makes the next request count again.
		b.counts.erased = st.Erased
	}
	if st, err = b.service.reader.events.Checkpoint(ctx, b.projectID); err != nil {
		return err
	}
	if err := b.addNewRows(ctx, st.Row); err != nil {
		return err
	}
	b.counts.lastRow = st.Row
	if b.recount || b.counts.reset || b.counts.calculatedAt.IsZero() || !b.run.plan.timeDependent {
		b.counts.calculatedAt = b.counter.now
		b.service.freshness.counted(b.actionID, b.revision, time.Since(b.counter.now))
	}
	if !dirty && st.Row-saved < unsavedRows && b.counter.now.Sub(savedAt) < unsavedTime {
		return nil
	}
	return b.save(ctx)
}

// Counts of fewer new rows or of less time are not stored: reading the rows
// again costs less than a write per request.
const (
	unsavedRows = 10_000
	unsavedTime = 30 * time.Second
)

// daysPerQuery is how many days are counted in one part: few enough that several
// cores share the work and a canceled run loses little.
func (b *runState) daysPerQuery() int64 {
	if b.run.plan.exact {
		return 15
	}
	return 1
}

// prepare prepares the loaded counts. Those of another definition are dropped;
// stale ones stay readable until they are counted again.
func (b *runState) prepare(st events.Checkpoint) {
	t := b.counts
	if t.fingerprint != b.run.plan.fingerprint {
		*t = actionCounts{serial: t.serial, fingerprint: b.run.plan.fingerprint, erased: st.Erased, days: map[int64]*day{}, reset: true}
		return
	}
	if !b.service.isStale(&Definition{ID: b.actionID}, t, b.run.plan, st, b.revision) {
		return
	}
	b.recount = true
	t.lastRow, t.undecided = 0, 0
	maps.DeleteFunc(t.days, func(n int64, _ *day) bool { return n < b.run.from || n > b.run.to })
	t.reset = true // stored days outside of the range are deleted
	for _, d := range t.days {
		d.lastRow, d.stale, d.dirty = 0, true, true
	}
}

// saveInterval is the least time between two writes of a run.
const saveInterval = 500 * time.Millisecond

// countMissing counts spans of days and stores them from time to time. A canceled
// run stores the spans that it has counted.
func (b *runState) countMissing(ctx context.Context, spans [][2]int64) error {
	if len(spans) == 0 {
		return nil
	}
	b.run.progress.Expect(len(spans))
	var mu sync.Mutex // of the counts
	var saved time.Time
	unsaved := false
	err := background.InParallel(ctx, b.service.workers, spans, func(ctx context.Context, span [2]int64) error {
		f, err := b.counter.count(ctx, events.HistoryQuery{From: dayStart(span[0]), To: dayStart(span[1] + 1)})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		b.setDays(span[0], span[1], f)
		b.run.progress.Step()
		if unsaved = time.Since(saved) < saveInterval; unsaved {
			return nil
		}
		saved = time.Now()
		return b.save(ctx)
	})
	if !unsaved || errors.Is(err, errConflict) {
		return err
	}
	return errors.Join(err, b.save(context.WithoutCancel(ctx)))
}

func (b *runState) setDays(from, to int64, f quarterCounts) {
	for n := from; n <= to; n++ {
		b.counts.days[n] = &day{lastRow: f.row, dirty: true}
	}
	b.addCounts(f, func(*day) bool { return true })
}

// addCounts adds counts to the days that accept them.
func (b *runState) addCounts(f quarterCounts, takes func(*day) bool) {
	for q, n := range f.events {
		d := b.counts.days[floorDiv(q, dayQuarters)]
		if d != nil && takes(d) {
			d.dirty = true
			*b.counts.quarter(q) += n
		}
	}
	b.counts.undecided += f.undecided
}

// rowsPerScan is how many rows of all events one query reads.
const rowsPerScan = 50_000

// addNewRows adds the events of newer rows to the days that do not have them
// yet.
func (b *runState) addNewRows(ctx context.Context, through int64) error {
	low := b.counts.minRow()
	if low >= through || len(b.counts.days) == 0 {
		return nil
	}
	// Between two of these rows the same days miss events.
	steps := []int64{through}
	for _, d := range b.counts.days {
		if r := max(d.lastRow, b.counts.lastRow); r > low && r < through {
			steps = append(steps, r)
		}
	}
	slices.Sort(steps)
	oldest := dayStart(slices.Min(slices.Collect(maps.Keys(b.counts.days))))
	parts := splitRows(low, slices.Compact(steps))
	b.run.progress.Expect(len(parts))
	var mu sync.Mutex // of the counts
	return background.InParallel(ctx, b.service.workers, parts, func(ctx context.Context, part [2]int64) error {
		f, err := b.counter.count(ctx, events.HistoryQuery{From: oldest, After: part[0], Through: part[1]})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		b.addCounts(f, func(d *day) bool { return max(d.lastRow, b.counts.lastRow) <= part[0] })
		b.run.progress.Step()
		return nil
	})
}

// splitRows splits the rows after low into ranges of at most rowsPerScan rows, none
// of which contains one of the steps before its end.
func splitRows(low int64, steps []int64) (parts [][2]int64) {
	for _, step := range steps {
		for low < step {
			high := min(step, low+rowsPerScan)
			parts = append(parts, [2]int64{low, high})
			low = high
		}
	}
	return parts
}

// save stores the changed days and deletes those older than the oldest kept
// day.
func (b *runState) save(ctx context.Context) error {
	b.counts.requestedAt = b.counter.now
	oldest := min(b.run.from, dayOf(b.counter.now)-int64(b.service.cfg.Days))
	if err := b.service.store.save(ctx, b.actionID, b.projectID, b.counts, oldest); err != nil {
		return fmt.Errorf("count action %d: %w", b.actionID, err)
	}
	return nil
}
