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

	"github.com/guidonhq/guidon/core/actions/history/background"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
)

// Service counts the stored events that fit an action and finds the persons who
// did it. It is safe for concurrent use and works between Start and Stop.
type Service struct {
	cfg      Config
	reader   *reader
	finder   *personFinder
	store    *store
	metrics  metrics
	workers  *background.Workers
	problems problemCache

	freshness freshness
	actions   Actions   // set by CorrectWith
	retention Retention // set by ShowRetention; nil keeps for ever

	mu   sync.Mutex
	runs map[int64]*run // by action
}

// reader is what counting reads from.
type reader struct {
	events  EventHistory
	sources actionmatch.Sources
	log     *zap.Logger
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

// New returns a Service on d, whose schema must be migrated. reg may be nil.
func New(cfg Config, d *db.DB, e EventHistory, p Persons, sources actionmatch.Sources, log *zap.Logger, reg prometheus.Registerer) *Service {
	r := &reader{events: e, sources: sources, log: log.Named("actions")}
	w := background.New(cfg.ParallelRuns, cfg.Readers)
	s := &Service{
		freshness: freshness{last: map[int64]lastRun{}},
		cfg:       cfg, reader: r, store: &store{db: d}, metrics: newMetrics(reg), workers: w, runs: map[int64]*run{},
		finder: &personFinder{reader: r, persons: p, workers: w, refresh: cfg.Refresh, maxWait: cfg.MaxWait, cache: newPersonCache(cfg.PersonCacheBytes)},
	}
	s.finder.freshness = &s.freshness
	return s
}

// keepUnrequested is how long a history is kept without a request.
const keepUnrequested = 90 * 24 * time.Hour

// Start deletes histories without a request for a long time, unless the server
// waits for its database: then the next start does.
func (h *Service) Start(ctx context.Context) error {
	if !h.store.db.IsReady() {
		return nil
	}
	return h.store.deleteUnrequested(ctx, time.Now().Add(-keepUnrequested))
}

// Stop cancels the runs and waits for them. They store what they have counted.
func (h *Service) Stop(ctx context.Context) error { return h.workers.Stop(ctx) }

// Count returns the number of events with a timestamp in [from, to) that fit
// the action. It waits a limited time for missing counts; see
// CountStatus.Calculating.
func (h *Service) Count(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time) (CountStatus, error) {
	p, t, f, err := h.requestCounts(ctx, a, loc, from, to)
	if err != nil || p.neverMatches() {
		return f, err
	}
	if from, err = h.firstOf(ctx, a.ProjectID, from); err != nil {
		return f, err
	}
	f.Count = t.sum(quarterOf(from), quarterOf(to)+1)
	only := []Bucket{{Start: from, Count: f.Count}}
	return f, h.trim(ctx, a, p, t, only, &f, from, to)
}

// requestCounts updates the counts of a time, as far as the time limit allows.
func (h *Service) requestCounts(ctx context.Context, a *Definition, loc *time.Location, from, to time.Time) (*plan, *actionCounts, CountStatus, error) {
	p, err := newPlan(a.Steps, loc, h.reader.sources.Operators)
	if err != nil {
		return nil, nil, CountStatus{}, err
	}
	f := CountStatus{Problem: p.problem()}
	if p.neverMatches() {
		f.CalculatedAt = time.Now()
		return p, nil, f, nil
	}
	if from, err = h.firstOf(ctx, a.ProjectID, from); err != nil {
		return nil, nil, CountStatus{}, fmt.Errorf("count action %d: %w", a.ID, err)
	}
	t, running, err := h.upToDate(ctx, a, p, dayOf(from), dayOf(to))
	if err != nil {
		return nil, nil, CountStatus{}, fmt.Errorf("count action %d: %w", a.ID, err)
	}
	f.Undecided, f.CalculatedAt, f.Ages = t.undecided, t.calculatedAt, p.timeDependent
	if running != nil {
		f.Calculating, f.Progress = true, running.progress.State()
	}
	return p, t, f, nil
}

// firstOf returns from, or the time of the first event if from is before the days
// that are always stored: the days before the first event need no count.
func (h *Service) firstOf(ctx context.Context, projectID int64, from time.Time) (time.Time, error) {
	now := time.Now()
	if from.After(now.AddDate(0, 0, -h.cfg.Days)) {
		return from, nil
	}
	first, err := h.reader.events.FirstEvent(ctx, projectID)
	switch {
	case err != nil:
		return from, err
	case first.IsZero():
		return now, nil
	case first.After(from):
		return first, nil
	}
	return from, nil
}

// countPartialQuarter counts the events of a part of a quarter.
func (h *Service) countPartialQuarter(ctx context.Context, a *Definition, p *plan, t *actionCounts, from, to time.Time) (n int64, err error) {
	if !from.Before(to) || t.sum(quarterOf(from), quarterOf(from)+1) == 0 {
		return 0, nil
	}
	c := newCounter(h.reader, a.ProjectID, a.ID, p, time.Now())
	f, err := c.count(ctx, events.HistoryQuery{From: from, To: to, Through: t.lastRow})
	for _, some := range f.events {
		n += some
	}
	return n, err
}

// Calculating reports whether a run of this process counts the action.
func (h *Service) Calculating(actionID int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[actionID] != nil
}

// CalculatedAt returns the time of the last complete count of actions; actions
// without one are left out.
func (h *Service) CalculatedAt(ctx context.Context, actionIDs []int64) (map[int64]time.Time, error) {
	return h.store.calculated(ctx, actionIDs)
}

// Problem returns why steps of a definition match nothing, or "" for a valid
// definition. The answer is cached for a while.
func (h *Service) Problem(d *Definition, loc *time.Location) string {
	return h.problems.get(problemKey{d.ID, d.Version, loc.String()}, func() string {
		p, err := newPlan(d.Steps, loc, h.reader.sources.Operators)
		if err != nil {
			return err.Error()
		}
		return p.problem()
	})
}

// isStale reports whether all stored counts have to be counted again. Counts that
// were corrected for an erasure can be newer than the checkpoint.
func (h *Service) isStale(a *Definition, t *actionCounts, p *plan, st events.Checkpoint, revision int64) bool {
	age := time.Since(t.calculatedAt)
	return t.erased < st.Erased || p.timeDependent && h.freshness.expired(a.ID, revision, age, h.cfg.Refresh) ||
		t.undecided > 0 && age > h.cfg.Refresh
}

// isComplete reports whether t covers all of the days.
func (h *Service) isComplete(a *Definition, t *actionCounts, p *plan, st events.Checkpoint, revision, from, to int64) bool {
	return t.serial > 0 && t.fingerprint == p.fingerprint && !h.isStale(a, t, p, st, revision) &&
		!t.calculatedAt.IsZero() && t.minRow() >= st.Row && len(t.missingDays(from, to, 1)) == 0
}

// upToDate returns the counts. If they are not complete in time, it returns what is
// known and the run that goes on.
func (h *Service) upToDate(ctx context.Context, a *Definition, p *plan, from, to int64) (*actionCounts, *run, error) {
	t, done, err := h.storedCounts(ctx, a, p, from, to)
	if err != nil || done {
		return t, nil, err
	}
	r, err := h.joinRun(a, p, from, to)
	if err != nil {
		return nil, nil, err
	}
	wait, stop := context.WithTimeout(ctx, h.cfg.MaxWait)
	defer stop()
	select {
	case <-r.done:
		// Events stored since are for the next request.
		return r.counts, nil, r.err
	case <-wait.Done():
		if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, nil, err
		}
		t, done, err := h.storedCounts(context.WithoutCancel(ctx), a, p, from, to)
		if done {
			r = nil
		}
		return t, r, err
	}
}

// storedCounts returns the stored counts of the plan, and whether they are
// complete.
func (h *Service) storedCounts(ctx context.Context, a *Definition, p *plan, from, to int64) (*actionCounts, bool, error) {
	st, err := h.reader.events.Checkpoint(ctx, a.ProjectID)
	if err != nil {
		return nil, false, err
	}
	revision, err := h.freshness.revision(ctx, a.ProjectID, p)
	if err != nil {
		return nil, false, err
	}
	t, err := h.store.load(ctx, a.ID)
	if err != nil {
		return nil, false, err
	}
	if h.isComplete(a, t, p, st, revision, from, to) {
		return t, true, nil
	}
	if t.fingerprint != p.fingerprint {
		t = &actionCounts{days: map[int64]*day{}}
	}
	return t, false, nil
}
