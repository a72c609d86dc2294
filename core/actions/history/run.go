package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
)

// run is one counting of one action. All who ask meanwhile share it.
type run struct {
	plan     *plan
	from, to int64 // days, both included
	done     chan struct{}
	// Once done:
	counts *actionCounts
	err    error
}

// joinRun returns the run that answers for these days, starting one when there is
// none. One that answers for less is waited for first.
func (h *Service) joinRun(a *Definition, p *plan, from, to int64) (*run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, errStopping
	}
	before := h.runs[a.ID]
	if before != nil && before.plan.fingerprint == p.fingerprint && before.from <= from && before.to >= to {
		return before, nil
	}
	r := &run{plan: p, from: from, to: to, done: make(chan struct{})}
	h.runs[a.ID] = r
	h.wg.Add(1)
	go h.execute(r, before, a.ID, a.ProjectID)
	return r, nil
}

var errStopping = fault.New(fault.Unavailable, "stopping", "The server is stopping.").After(time.Second)

// execute waits for its turn, and for the run before it, and counts.
func (h *Service) execute(r, before *run, actionID, projectID int64) {
	defer h.wg.Done()
	began := time.Now()
	r.err = h.withSlot(before, r.plan, func() error { return h.countWithRetry(h.ctx, r, actionID, projectID) })
	result := "done"
	if r.err != nil {
		result = "failed"
		if h.ctx.Err() != nil {
			result, r.err = "stopped", errStopping
		} else {
			h.log.Error("counting the history of an action failed", zap.Int64("action_id", actionID), zap.Error(r.err))
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

func (h *Service) withSlot(before *run, p *plan, fn func() error) (err error) {
	if before != nil {
		<-before.done
	}
	turns := h.scanSlots
	if p.exact {
		turns = h.indexSlots
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-h.ctx.Done():
		return h.ctx.Err()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("counting panicked: %v", p)
		}
	}()
	return fn()
}

// maxAttempts is how often a run begins again when another node counts the same.
const maxAttempts = 20

// countWithRetry counts what is lacking, again when another node was faster: what that
// one stored is used then.
func (h *Service) countWithRetry(ctx context.Context, r *run, actionID, projectID int64) (err error) {
	for range maxAttempts {
		b := &runState{service: h, run: r, actionID: actionID, projectID: projectID}
		b.counter = &counter{h: h, projectID: projectID, plan: r.plan, now: time.Now()}
		if err = b.update(ctx); !errors.Is(err, errConflict) {
			r.counts = b.counts
			return err
		}
	}
	return err
}

// runState are the tally of a run while it is worked on.
type runState struct {
	service             *Service
	run                 *run
	counter             *counter
	actionID, projectID int64
	counts              *actionCounts
}

// update counts the days that lack, the newest first, then what has come since
// to any of them.
func (b *runState) update(ctx context.Context) error {
	st, err := b.service.events.Checkpoint(ctx, b.projectID)
	if err != nil {
		return err
	}
	if b.counts, err = b.service.store.load(ctx, b.actionID); err != nil {
		return err
	}
	b.prepare(st)
	saved, savedAt, dirty := b.counts.lastRow, b.counts.calculatedAt, b.counts.serial == 0 || b.counts.reset
	for _, span := range b.counts.missingDays(b.run.from, b.run.to, b.daysPerQuery()) {
		if err := b.countDays(ctx, span[0], span[1]); err != nil {
			return err
		}
		if err := b.save(ctx); err != nil {
			return err
		}
		dirty = true
	}
	// Events that were erased while their days were counted are in some of
	// them: whoever asks next counts again, because erased is the old number.
	b.counts.erased = st.Erased
	if st, err = b.service.events.Checkpoint(ctx, b.projectID); err != nil {
		return err
	}
	if err := b.addNewRows(ctx, st.Row); err != nil {
		return err
	}
	b.counts.lastRow, b.counts.calculatedAt = st.Row, b.counter.now
	if !dirty && st.Row-saved < unsavedRows && b.counter.now.Sub(savedAt) < unsavedTime {
		return nil
	}
	return b.save(ctx)
}

// What has been counted of this many rows, or in this time, is not stored: to
// read them once more costs less than a write for everyone who asks.
const (
	unsavedRows = 10_000
	unsavedTime = 30 * time.Second
)

// daysPerQuery is how many days are counted at once: as many as are counted in about
// a second, so that a run that is stopped has not worked for nothing.
func (b *runState) daysPerQuery() int64 {
	if b.run.plan.exact {
		return 31
	}
	return 1
}

// prepare prepares the tally: of another definition nothing is kept; what is
// stale answers until it is counted anew.
func (b *runState) prepare(st events.Checkpoint) {
	t := b.counts
	if t.fingerprint != b.run.plan.fingerprint {
		*t = actionCounts{serial: t.serial, fingerprint: b.run.plan.fingerprint, erased: st.Erased, days: map[int64]*day{}, reset: true}
		return
	}
	if !b.service.isStale(t, b.run.plan, st, b.counter.now) {
		return
	}
	t.lastRow, t.undecided = 0, 0
	maps.DeleteFunc(t.days, func(n int64, _ *day) bool { return n < b.run.from || n > b.run.to })
	t.reset = true // stored days outside of the range go
	for _, d := range t.days {
		d.lastRow, d.stale, d.dirty = 0, true, true
	}
}

func (b *runState) countDays(ctx context.Context, from, to int64) error {
	f, err := b.counter.count(ctx, events.HistoryQuery{From: dayStart(from), To: dayStart(to + 1)})
	if err != nil {
		return err
	}
	for n := from; n <= to; n++ {
		b.counts.days[n] = &day{lastRow: f.row, dirty: true}
	}
	b.addCounts(f, func(*day) bool { return true })
	return nil
}

// addCounts adds what was found to the days that take it.
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

// rowsPerScan is how many rows of all events are read at once.
const rowsPerScan = 50_000

// addNewRows adds the events of newer rows to the days that do not have them yet.
func (b *runState) addNewRows(ctx context.Context, through int64) error {
	low := b.counts.minRow()
	if low >= through || len(b.counts.days) == 0 {
		return nil
	}
	// Between two of these rows the same days lack events.
	steps := []int64{through}
	for _, d := range b.counts.days {
		if r := max(d.lastRow, b.counts.lastRow); r > low && r < through {
			steps = append(steps, r)
		}
	}
	slices.Sort(steps)
	oldest := dayStart(slices.Min(slices.Collect(maps.Keys(b.counts.days))))
	for _, step := range slices.Compact(steps) {
		for low < step {
			high := min(step, low+rowsPerScan)
			f, err := b.counter.count(ctx, events.HistoryQuery{From: oldest, After: low, Through: high})
			if err != nil {
				return err
			}
			b.addCounts(f, func(d *day) bool { return max(d.lastRow, b.counts.lastRow) <= low })
			low = high
		}
	}
	return nil
}

// save stores what is new. Days that were counted before the oldest that is
// kept are forgotten.
func (b *runState) save(ctx context.Context) error {
	b.counts.requestedAt = b.counter.now
	oldest := min(b.run.from, dayOf(b.counter.now)-int64(b.service.cfg.Days))
	if err := b.service.store.save(ctx, b.actionID, b.projectID, b.counts, oldest); err != nil {
		return fmt.Errorf("count action %d: %w", b.actionID, err)
	}
	return nil
}
