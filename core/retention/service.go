package retention

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cluster/onenode"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbclock"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal/clock"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// The first run waits for a while after the start, so that a clock that is wrong at
// boot is set before.
const (
	startDelay   = time.Minute
	interval     = 15 * time.Minute
	failureDelay = time.Minute
	refreshEvery = 30 * time.Second
	// refreshTimeout bounds the read after a change; refreshEvery repeats it.
	refreshTimeout = 10 * time.Second
)

// maxRules bounds the rules by event name of a project.
const maxRules = 1000

// Service knows the rules of all projects and deletes old events between Start and
// Stop. It is safe for concurrent use.
type Service struct {
	db      *db.DB
	events  *events.Service
	store   *store
	setting time.Duration
	log     *zap.Logger
	metrics metrics
	clock   *clock.Clock

	database *dbclock.Clock
	service  retry.Service
	wake     chan struct{}
	running  sync.Mutex   // held by a run
	jobs     onenode.Jobs // nil for a single node

	policies atomic.Pointer[map[int64]policy] // of projects with rules; nil before they are read
}

type metrics struct {
	deleted, refused, failures prometheus.Counter
	oldest, lastRun            prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "retention", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Namespace: "guidon", Subsystem: "retention", Name: name, Help: help})
	}
	return metrics{
		deleted:  counter("deleted_events_total", "Stored events deleted because of their age."),
		refused:  counter("refused_events_total", "Arriving events not stored because of their age; a batch that is repeated counts again."),
		failures: counter("failures_total", "Runs that failed and are repeated."),
		oldest:   gauge("oldest_event_timestamp_seconds", "Smallest timestamp of a stored event at the end of the last run."),
		lastRun:  gauge("last_run_timestamp_seconds", "End of the last run over all projects; 0 before the first."),
	}
}

// New returns a Service that has not started, on d, whose schema must be migrated.
// setting is the age for projects without rules. reg may be nil.
func New(setting time.Duration, d *db.DB, e *events.Service, log *zap.Logger, reg prometheus.Registerer) *Service {
	return &Service{
		db: d, events: e, store: &store{d}, setting: setting, log: log.Named("retention"), metrics: newMetrics(reg),
		clock: clock.New(nil), database: dbclock.New(d), wake: make(chan struct{}, 1),
	}
}

// RunOn makes one of the nodes that share jobs delete at a time. It must be called before
// Start. Rules that are set on another node have an effect at the next interval.
func (s *Service) RunOn(jobs onenode.Jobs) { s.jobs = jobs }

// Start reads the rules, unless the server waits for its database, and begins to
// delete.
func (s *Service) Start(ctx context.Context) error {
	if s.db.IsReady() {
		if err := s.refresh(ctx); err != nil {
			return err
		}
	}
	s.service.Start()
	onenode.Go(&s.service, s.jobs, "retention", s.loop)
	s.service.Every(refreshEvery, func(ctx context.Context) {
		s.now() // the clock must be read regularly to notice jumps
		if err := errors.Join(s.database.Sync(ctx), s.refresh(ctx)); err != nil && ctx.Err() == nil {
			s.log.Warn("retention rules read failed", zap.Error(err))
		}
	})
	return nil
}

// Stop waits for the transaction at hand.
func (s *Service) Stop(ctx context.Context) error { return s.service.Stop(ctx) }

// now returns the earlier of the times of this machine and of the database: no node
// deletes events early because its clock is ahead.
func (s *Service) now() time.Time {
	here, there := s.clock.Now(), s.database.Now()
	if there.Before(here) {
		return there
	}
	return here
}

// refresh reads the rules of all projects.
func (s *Service) refresh(ctx context.Context) error {
	rules, err := s.store.rules(ctx, 0)
	if err != nil {
		return err
	}
	policies := make(map[int64]policy, len(rules))
	for id, r := range rules {
		policies[id] = r.policy(s.setting)
	}
	s.policies.Store(&policies)
	return nil
}

func (s *Service) policyOf(projectID int64) policy {
	if all := s.policies.Load(); all != nil {
		if p, ok := (*all)[projectID]; ok {
			return p
		}
	}
	return policy{fallback: s.setting}
}

// Rules returns the rules of a project.
func (s *Service) Rules(ctx context.Context, projectID int64) (Rules, error) {
	all, err := s.store.rules(ctx, projectID)
	return all[projectID], err
}

// SetRules replaces the rules of a project. It joins the transaction of ctx. A run
// starts after it.
func (s *Service) SetRules(ctx context.Context, projectID int64, r Rules) error {
	if len(r.Events) > maxRules {
		return fault.Fieldf("events", "invalid_input", "A project has at most %d rules by event name.", maxRules)
	}
	if err := s.store.replace(ctx, projectID, r); err != nil {
		return err
	}
	s.db.AfterCommit(ctx, func() {
		// ctx may have the transaction that is over.
		fresh, cancel := context.WithTimeout(context.Background(), refreshTimeout)
		defer cancel()
		if err := s.refresh(fresh); err != nil {
			s.log.Warn("retention rules read failed", zap.Error(err))
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	})
	return nil
}

// Preview is what rules would do now.
type Preview struct {
	Events int64
	// OldestKept is the smallest timestamp of the events that stay; zero without any.
	OldestKept time.Time
}

// Preview counts the events that rules of a project would delete now.
func (s *Service) Preview(ctx context.Context, projectID int64, r Rules) (Preview, error) {
	p, now := r.policy(s.setting), s.now()
	names, err := s.events.Names(ctx, projectID)
	if err != nil {
		return Preview{}, err
	}
	due, err := p.expiries(projectID, now, func() ([]string, error) { return names, nil })
	if err != nil {
		return Preview{}, err
	}
	var out Preview
	covered := false
	for _, x := range due {
		covered = covered || x.Event == ""
	}
	for _, x := range due {
		// One deletion of all names covers those that are kept for a shorter time up to its limit.
		n, err := s.events.CountExpired(ctx, x)
		if err != nil {
			return Preview{}, err
		}
		out.Events += n
		if covered && x.Event != "" {
			if n, err = s.events.CountExpired(ctx, events.Expiry{ProjectID: projectID, Event: x.Event, Before: now.Add(-p.fallback)}); err != nil {
				return Preview{}, err
			}
			out.Events -= n
		}
	}
	for _, name := range names {
		var since time.Time
		if keep := p.keep(name); keep > 0 {
			since = now.Add(-keep)
		}
		at, ok, err := s.events.Oldest(ctx, projectID, name, since)
		if err != nil {
			return Preview{}, fmt.Errorf("preview retention: %w", err)
		}
		if ok && (out.OldestKept.IsZero() || at.Before(out.OldestKept)) {
			out.OldestKept = at
		}
	}
	return out, nil
}

// KeptSince returns the time since which all events with these names are kept, of any
// name for nil; zero if they are kept for ever.
func (s *Service) KeptSince(projectID int64, names []string) time.Time {
	if keep := s.policyOf(projectID).shortest(names); keep > 0 {
		return s.now().Add(-keep)
	}
	return time.Time{}
}

// TooOld returns a function that reports whether an event that arrives now is older
// than its project keeps it, and that age; nil if every event is kept for ever.
func (s *Service) TooOld() func(ev *sdk.Event) (keep time.Duration, old bool) {
	all := s.policies.Load()
	if s.setting == 0 && (all == nil || len(*all) == 0) {
		return nil
	}
	now := s.now()
	return func(ev *sdk.Event) (time.Duration, bool) {
		keep := s.policyOf(ev.ProjectID).keep(ev.Name)
		old := keep > 0 && now.Sub(ev.Timestamp) > keep
		if old {
			s.metrics.refused.Inc()
		}
		return keep, old
	}
}
