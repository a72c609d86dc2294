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

// Service counts the events of the past that fit an action, and finds who did
// it. What it counted it keeps in the database, a number for each quarter of
// an hour, and brings up to date from the rows that are newer: events that
// come late fall into the quarter they belong to. Erased events and a changed
// definition make it count anew. Its methods may be called from any number of
// goroutines; they work between Start and Stop.
type Service struct {
	cfg         Config
	events      EventHistory
	persons     Persons
	sources     actionmatch.Sources
	store       *store
	log         *zap.Logger
	metrics     metrics
	personCache *personCache

	problems problemCache

	ctx    context.Context // ends the runs
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// Counts that an index answers do not wait for those that read events.
	indexSlots, scanSlots chan struct{}

	mu      sync.Mutex
	stopped bool
	runs    map[int64]*run
}

type metrics struct {
	runs     *prometheus.CounterVec
	duration prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) metrics {
	f := promauto.With(reg)
	return metrics{
		runs: f.NewCounterVec(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "actions", Name: "history_runs_total",
			Help: "Times the history of an action was counted, by how it ended."}, []string{"result"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{Namespace: "guidon", Subsystem: "actions", Name: "history_run_seconds",
			Help: "How long counting the history of an action took.", Buckets: []float64{.01, .05, .25, 1, 5, 30, 120, 600}}),
	}
}

// New returns a History on d, whose schema must be migrated. reg may be
// nil.
func New(cfg Config, d *db.DB, past EventHistory, gallery Persons, sources actionmatch.Sources, log *zap.Logger, reg prometheus.Registerer) *Service {
	h := &Service{
		cfg: cfg, events: past, persons: gallery, sources: sources, store: &store{db: d}, log: log.Named("actions"),
		metrics: newMetrics(reg), personCache: newPersonCache(cfg.PersonCacheBytes),
		indexSlots: make(chan struct{}, 1), scanSlots: make(chan struct{}, cfg.ParallelRuns), runs: map[int64]*run{},
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// keepUnrequested is how long a history is kept that nobody asks for.
const keepUnrequested = 90 * 24 * time.Hour

// Start forgets histories that nobody has asked for in a long time.
func (h *Service) Start(ctx context.Context) error {
	return h.store.forget(ctx, time.Now().Add(-keepUnrequested))
}

// Stop ends the runs, waits for them and keeps what they have counted so far.
func (h *Service) Stop(ctx context.Context) error {
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
func (h *Service) Count(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time) (CountStatus, error) {
	p, t, f, err := h.requestCounts(ctx, a, loc, from, to)
	if err != nil || p.neverMatches() {
		return f, err
	}
	f.Count = t.sum(quarterOf(from), quarterOf(to)+1)
	only := []Bucket{{Start: from, Count: f.Count}}
	return f, h.trim(ctx, a, p, t, only, &f, from, to)
}

// requestCounts brings what is counted from one time to another up to date, as far as
// there is patience.
func (h *Service) requestCounts(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time) (*plan, *actionCounts, CountStatus, error) {
	p, err := newPlan(a.Steps, loc, h.sources.Operators)
	if err != nil {
		return nil, nil, CountStatus{}, err
	}
	f := CountStatus{Problem: p.problem()}
	if p.neverMatches() {
		f.CalculatedAt = time.Now()
		return p, nil, f, nil
	}
	t, done, err := h.upToDate(ctx, a, p, dayOf(from), dayOf(to))
	if err != nil {
		return nil, nil, CountStatus{}, fmt.Errorf("count action %d: %w", a.ID, err)
	}
	f.Undecided, f.Calculating, f.CalculatedAt = t.undecided, !done, t.calculatedAt
	return p, t, f, nil
}

// countPartialQuarter counts the events of a part of a quarter.
func (h *Service) countPartialQuarter(ctx context.Context, a *Definition, p *plan, t *actionCounts, from, to time.Time) (n int64, err error) {
	if !from.Before(to) || t.sum(quarterOf(from), quarterOf(from)+1) == 0 {
		return 0, nil
	}
	c := &counter{h: h, projectID: a.ProjectID, plan: p, now: time.Now()}
	f, err := c.count(ctx, events.HistoryQuery{From: from, To: to, Through: t.lastRow})
	for _, some := range f.events {
		n += some
	}
	return n, err
}

// Calculating reports whether the history of an action is being counted here.
func (h *Service) Calculating(actionID int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[actionID] != nil
}

// CalculatedAt returns when the histories of actions were last counted to
// their end; those that never were are left out.
func (h *Service) CalculatedAt(ctx context.Context, actionIDs []int64) (map[int64]time.Time, error) {
	return h.store.calculated(ctx, actionIDs)
}

// Problem returns what is wrong with a definition, so that some or all of its
// steps match nothing; "" when there is nothing.
func (h *Service) Problem(a *Definition, loc *time.Location) string {
	key := problemKey{a.ID, a.Version, loc.String()}
	h.problems.Lock()
	known, ok := h.problems.known[key]
	h.problems.Unlock()
	if ok && time.Since(known.at) < problemTTL {
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
	if h.problems.known == nil || len(h.problems.known) >= maxProblems {
		h.problems.known = map[problemKey]cachedProblem{}
	}
	h.problems.known[key] = cachedProblem{text, time.Now()}
	return text
}

// What is wrong with a definition is remembered for a while, because lists show
// it: it changes with the definition, and with the plugins that are there.
const (
	problemTTL  = 30 * time.Second
	maxProblems = 10_000
)

type problemKey struct {
	action, version int64
	zone            string
}

type cachedProblem struct {
	text string
	at   time.Time
}

type problemCache struct {
	sync.Mutex
	known map[problemKey]cachedProblem
}

// isStale reports whether what is stored has to be counted again as a whole.
func (h *Service) isStale(t *actionCounts, p *plan, st events.Checkpoint, now time.Time) bool {
	return t.erased != st.Erased || (p.timeDependent || t.undecided > 0) && now.Sub(t.calculatedAt) > h.cfg.Refresh
}

// isComplete reports whether t answers for all of the days.
func (h *Service) isComplete(t *actionCounts, p *plan, st events.Checkpoint, from, to int64) bool {
	return t.serial > 0 && t.fingerprint == p.fingerprint && !h.isStale(t, p, st, time.Now()) &&
		!t.calculatedAt.IsZero() && t.minRow() >= st.Row && len(t.missingDays(from, to, 1)) == 0
}

// upToDate returns what is counted, and whether that is all there is.
func (h *Service) upToDate(ctx context.Context, a *Definition, p *plan, from, to int64) (*actionCounts, bool, error) {
	t, done, err := h.storedCounts(ctx, a, p, from, to)
	if err != nil || done {
		return t, done, err
	}
	r, err := h.joinRun(a, p, from, to)
	if err != nil {
		return nil, false, err
	}
	wait, stop := context.WithTimeout(ctx, h.cfg.MaxWait)
	defer stop()
	select {
	case <-r.done:
		// What has come since is for the next one who asks.
		return r.counts, r.err == nil, r.err
	case <-wait.Done():
		if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, false, err
		}
		return h.storedCounts(context.WithoutCancel(ctx), a, p, from, to)
	}
}

// storedCounts returns what is stored of the plan.
func (h *Service) storedCounts(ctx context.Context, a *Definition, p *plan, from, to int64) (*actionCounts, bool, error) {
	st, err := h.events.Checkpoint(ctx, a.ProjectID)
	if err != nil {
		return nil, false, err
	}
	t, err := h.store.load(ctx, a.ID)
	if err != nil {
		return nil, false, err
	}
	if h.isComplete(t, p, st, from, to) {
		return t, true, nil
	}
	if t.fingerprint != p.fingerprint {
		t = &actionCounts{days: map[int64]*day{}}
	}
	return t, false, nil
}
