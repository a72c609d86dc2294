package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
)

// History counts the events of the past that fit an action, and finds who did
// it. What it counted it keeps in the database, a number for each quarter of
// an hour, and brings up to date from the rows that are newer: events that
// come late fall into the quarter they belong to. Erased events and a changed
// definition make it count anew. Its methods may be called from any number of
// goroutines; they work between Start and Stop.
type History struct {
	cfg     HistoryConfig
	past    EventHistory
	gallery Persons
	sources actionmatch.Sources
	store   *historyStore
	log     *zap.Logger
	metrics historyMetrics
	people  *peopleMemory

	problems problems

	ctx    context.Context // ends the runs
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// Counts that an index answers do not wait for those that read events.
	quick, slow chan struct{}

	mu      sync.Mutex
	stopped bool
	runs    map[int64]*run
}

type historyMetrics struct {
	runs     *prometheus.CounterVec
	duration prometheus.Histogram
}

func newHistoryMetrics(reg prometheus.Registerer) historyMetrics {
	f := promauto.With(reg)
	return historyMetrics{
		runs: f.NewCounterVec(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "actions", Name: "history_runs_total",
			Help: "Times the history of an action was counted, by how it ended."}, []string{"result"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{Namespace: "guidon", Subsystem: "actions", Name: "history_run_seconds",
			Help: "How long counting the history of an action took.", Buckets: []float64{.01, .05, .25, 1, 5, 30, 120, 600}}),
	}
}

// NewHistory returns a History on d, whose schema must be migrated. reg may be
// nil.
func NewHistory(cfg HistoryConfig, d *db.DB, past EventHistory, gallery Persons, sources actionmatch.Sources, log *zap.Logger, reg prometheus.Registerer) *History {
	h := &History{
		cfg: cfg, past: past, gallery: gallery, sources: sources, store: &historyStore{db: d}, log: log.Named("actions"),
		metrics: newHistoryMetrics(reg), people: newPeopleMemory(cfg.PeopleBytes),
		quick: make(chan struct{}, 1), slow: make(chan struct{}, cfg.Runs), runs: map[int64]*run{},
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// unasked is how long a history is kept that nobody asks for.
const unasked = 90 * 24 * time.Hour

// Start forgets histories that nobody has asked for in a long time.
func (h *History) Start(ctx context.Context) error {
	return h.store.forget(ctx, time.Now().Add(-unasked))
}

// Stop ends the runs, waits for them and keeps what they have counted so far.
func (h *History) Stop(ctx context.Context) error {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.cancel()
	done := make(chan struct{})
	go func() { h.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop counting histories: %w", ctx.Err())
	}
}

// Count returns how many events with a timestamp from one time up to another
// fit the action. It waits a little for what has to be counted first; see
// Finding.Calculating.
func (h *History) Count(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time) (Finding, error) {
	p, t, f, err := h.ask(ctx, a, loc, from, to)
	if err != nil || p.never() {
		return f, err
	}
	f.Count = t.sum(quarterOf(from), quarterOf(to)+1)
	only := []Bucket{{Start: from, Count: f.Count}}
	return f, h.trim(ctx, a, p, t, only, &f, from, to)
}

// ask brings what is counted from one time to another up to date, as far as
// there is patience.
func (h *History) ask(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time) (*plan, *tally, Finding, error) {
	p, err := newPlan(a.Steps, loc, h.sources.Operators)
	if err != nil {
		return nil, nil, Finding{}, err
	}
	f := Finding{Problem: p.problem()}
	if p.never() {
		f.CalculatedAt = time.Now()
		return p, nil, f, nil
	}
	t, done, err := h.fresh(ctx, a, p, dayOf(from), dayOf(to))
	if err != nil {
		return nil, nil, Finding{}, fmt.Errorf("count action %d: %w", a.ID, err)
	}
	f.Undecided, f.Calculating, f.CalculatedAt = t.undecided, !done, t.calculatedAt
	return p, t, f, nil
}

// outside counts the events of a part of a quarter.
func (h *History) outside(ctx context.Context, a *Definition, p *plan, t *tally, from, to time.Time) (n int64, err error) {
	if !from.Before(to) || t.sum(quarterOf(from), quarterOf(from)+1) == 0 {
		return 0, nil
	}
	c := &counter{h: h, projectID: a.ProjectID, plan: p, now: time.Now()}
	f, err := c.count(ctx, events.HistoryQuery{From: from, To: to, Through: t.row})
	for _, some := range f.events {
		n += some
	}
	return n, err
}

// Calculating reports whether the history of an action is being counted here.
func (h *History) Calculating(actionID int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[actionID] != nil
}

// CalculatedAt returns when the histories of actions were last counted to
// their end; those that never were are left out.
func (h *History) CalculatedAt(ctx context.Context, actionIDs []int64) (map[int64]time.Time, error) {
	return h.store.calculated(ctx, actionIDs)
}

// Problem returns what is wrong with a definition, so that some or all of its
// steps match nothing; "" when there is nothing.
func (h *History) Problem(a *Definition, loc *time.Location) string {
	key := problemKey{a.ID, a.Version, loc.String()}
	h.problems.Lock()
	known, ok := h.problems.known[key]
	h.problems.Unlock()
	if ok && time.Since(known.at) < problemsFor {
		return known.text
	}
	var text string
	if p, err := newPlan(a.Steps, loc, h.sources.Operators); err != nil {
		text = err.Error()
	} else {
		text = p.problem()
	}
	h.problems.Lock()
	defer h.problems.Unlock()
	if h.problems.known == nil || len(h.problems.known) >= problemsMost {
		h.problems.known = map[problemKey]problemText{}
	}
	h.problems.known[key] = problemText{text, time.Now()}
	return text
}

// What is wrong with a definition is remembered for a while, because lists show
// it: it changes with the definition, and with the plugins that are there.
const (
	problemsFor  = 30 * time.Second
	problemsMost = 10_000
)

type problemKey struct {
	action, version int64
	zone            string
}

type problemText struct {
	text string
	at   time.Time
}

type problems struct {
	sync.Mutex
	known map[problemKey]problemText
}

// stale reports whether what is stored has to be counted again as a whole.
func (h *History) stale(t *tally, p *plan, st events.Checkpoint, now time.Time) bool {
	return t.erased != st.Erased || (p.volatile || t.undecided > 0) && now.Sub(t.calculatedAt) > h.cfg.Refresh
}

// whole reports whether t answers for all of the days.
func (h *History) whole(t *tally, p *plan, st events.Checkpoint, from, to int64) bool {
	return t.serial > 0 && t.fingerprint == p.fingerprint && !h.stale(t, p, st, time.Now()) &&
		!t.calculatedAt.IsZero() && t.lowest() >= st.Row && len(t.lacking(from, to, 1)) == 0
}

// fresh returns what is counted, and whether that is all there is.
func (h *History) fresh(ctx context.Context, a *Definition, p *plan, from, to int64) (*tally, bool, error) {
	t, done, err := h.known(ctx, a, p, from, to)
	if err != nil || done {
		return t, done, err
	}
	r, err := h.join(a, p, from, to)
	if err != nil {
		return nil, false, err
	}
	wait, stop := context.WithTimeout(ctx, h.cfg.Patience)
	defer stop()
	select {
	case <-r.done:
		// What has come since is for the next one who asks.
		return r.tally, r.err == nil, r.err
	case <-wait.Done():
		if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, false, err
		}
		return h.known(context.WithoutCancel(ctx), a, p, from, to)
	}
}

// known returns what is stored of the plan.
func (h *History) known(ctx context.Context, a *Definition, p *plan, from, to int64) (*tally, bool, error) {
	st, err := h.past.Checkpoint(ctx, a.ProjectID)
	if err != nil {
		return nil, false, err
	}
	t, err := h.store.load(ctx, a.ID)
	if err != nil {
		return nil, false, err
	}
	if h.whole(t, p, st, from, to) {
		return t, true, nil
	}
	if t.fingerprint != p.fingerprint {
		t = &tally{days: map[int64]*day{}}
	}
	return t, false, nil
}
