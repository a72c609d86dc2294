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
	tally *tally
	err   error
}

// join returns the run that answers for these days, starting one when there is
// none. One that answers for less is waited for first.
func (h *History) join(a *Definition, p *plan, from, to int64) (*run, error) {
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
	go h.start(r, before, a.ID, a.ProjectID)
	return r, nil
}

var errStopping = fault.New(fault.Unavailable, "stopping", "The server is stopping.").After(time.Second)

// start waits for its turn, and for the run before it, and counts.
func (h *History) start(r, before *run, actionID, projectID int64) {
	defer h.wg.Done()
	began := time.Now()
	r.err = h.inTurn(before, r.plan, func() error { return h.count(h.ctx, r, actionID, projectID) })
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

func (h *History) inTurn(before *run, p *plan, fn func() error) (err error) {
	if before != nil {
		<-before.done
	}
	turns := h.slow
	if p.exact {
		turns = h.quick
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

// races is how often a run begins again when another node counts the same.
const races = 20

// count counts what is lacking, again when another node was faster: what that
// one stored is used then.
func (h *History) count(ctx context.Context, r *run, actionID, projectID int64) (err error) {
	for range races {
		b := &books{h: h, r: r, actionID: actionID, projectID: projectID}
		b.counter = &counter{h: h, projectID: projectID, plan: r.plan, now: time.Now()}
		if err = b.work(ctx); !errors.Is(err, errRaced) {
			r.tally = b.t
			return err
		}
	}
	return err
}

// books are the tally of a run while it is worked on.
type books struct {
	h                   *History
	r                   *run
	counter             *counter
	actionID, projectID int64
	t                   *tally
}

// work counts the days that lack, the newest first, then what has come since
// to any of them.
func (b *books) work(ctx context.Context) error {
	st, err := b.h.past.Checkpoint(ctx, b.projectID)
	if err != nil {
		return err
	}
	if b.t, err = b.h.store.load(ctx, b.actionID); err != nil {
		return err
	}
	b.begin(st)
	saved, savedAt, dirty := b.t.row, b.t.calculatedAt, b.t.serial == 0 || b.t.anew
	for _, span := range b.t.lacking(b.r.from, b.r.to, b.span()) {
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
	b.t.erased = st.Erased
	if st, err = b.h.past.Checkpoint(ctx, b.projectID); err != nil {
		return err
	}
	if err := b.follow(ctx, st.Row); err != nil {
		return err
	}
	b.t.row, b.t.calculatedAt = st.Row, b.counter.now
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

// span is how many days are counted at once: as many as are counted in about
// a second, so that a run that is stopped has not worked for nothing.
func (b *books) span() int64 {
	if b.r.plan.exact {
		return 31
	}
	return 1
}

// begin prepares the tally: of another definition nothing is kept; what is
// stale answers until it is counted anew.
func (b *books) begin(st events.Checkpoint) {
	t := b.t
	if t.fingerprint != b.r.plan.fingerprint {
		*t = tally{serial: t.serial, fingerprint: b.r.plan.fingerprint, erased: st.Erased, days: map[int64]*day{}, anew: true}
		return
	}
	if !b.h.stale(t, b.r.plan, st, b.counter.now) {
		return
	}
	t.row, t.undecided = 0, 0
	maps.DeleteFunc(t.days, func(n int64, _ *day) bool { return n < b.r.from || n > b.r.to })
	t.anew = true // stored days outside of the range go
	for _, d := range t.days {
		d.row, d.stale, d.dirty = 0, true, true
	}
}

func (b *books) countDays(ctx context.Context, from, to int64) error {
	f, err := b.counter.count(ctx, events.HistoryQuery{From: dayStart(from), To: dayStart(to + 1)})
	if err != nil {
		return err
	}
	for n := from; n <= to; n++ {
		b.t.days[n] = &day{row: f.row, dirty: true}
	}
	b.add(f, func(*day) bool { return true })
	return nil
}

// add adds what was found to the days that take it.
func (b *books) add(f found, takes func(*day) bool) {
	for q, n := range f.events {
		d := b.t.days[floorDiv(q, dayQuarters)]
		if d != nil && takes(d) {
			d.dirty = true
			*b.t.at(q) += n
		}
	}
	b.t.undecided += f.undecided
}

// stride is how many rows of all events are read at once.
const stride = 50_000

// follow adds the events of newer rows to the days that do not have them yet.
func (b *books) follow(ctx context.Context, through int64) error {
	low := b.t.lowest()
	if low >= through || len(b.t.days) == 0 {
		return nil
	}
	// Between two of these rows the same days lack events.
	steps := []int64{through}
	for _, d := range b.t.days {
		if r := max(d.row, b.t.row); r > low && r < through {
			steps = append(steps, r)
		}
	}
	slices.Sort(steps)
	oldest := dayStart(slices.Min(slices.Collect(maps.Keys(b.t.days))))
	for _, step := range slices.Compact(steps) {
		for low < step {
			high := min(step, low+stride)
			f, err := b.counter.count(ctx, events.HistoryQuery{From: oldest, After: low, Through: high})
			if err != nil {
				return err
			}
			b.add(f, func(d *day) bool { return max(d.row, b.t.row) <= low })
			low = high
		}
	}
	return nil
}

// save stores what is new. Days that were counted before the oldest that is
// kept are forgotten.
func (b *books) save(ctx context.Context) error {
	b.t.askedAt = b.counter.now
	oldest := min(b.r.from, dayOf(b.counter.now)-int64(b.h.cfg.Days))
	if err := b.h.store.save(ctx, b.actionID, b.projectID, b.t, oldest); err != nil {
		return fmt.Errorf("count action %d: %w", b.actionID, err)
	}
	return nil
}
