package capture

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/warning"
	"github.com/guidonhq/guidon/core/retry"
)

// KindOverQuota is the type of the warning that events were dropped because their
// project is over quota.
const KindOverQuota = "events_over_quota"

// Meter counts the events of projects and enforces quotas. It decides from
// memory. Every few seconds it adds its counts to the database, where the meters
// of all nodes meet and a restart finds them. So several nodes together may
// accept a little more than a quota: at most what the others accept within two
// intervals of writing, which are half a second together once a project has used nine
// tenths of its quota. A crash loses a few seconds of counts.
// Without a database the meter goes on with its counts in memory.
type Meter struct {
	quota    atomic.Pointer[QuotaConfig]
	changed  chan struct{} // has a value after a change of the quota
	db       *db.DB
	store    *UsageStore
	warnings *warning.Store
	metrics  *Metrics
	logger   *zap.Logger
	now      func() time.Time
	service  retry.Service

	mu       sync.Mutex
	from, to time.Time        // the period
	projects map[int64]*usage // in the period
	unsaved  []usageRow       // of earlier periods
}

// usage is what a project has sent in the period.
type usage struct {
	stored        int64 // events in the database, of all nodes, and those being written
	events        int64 // accepted since then
	storedRefused int64 // events over quota, as stored
	refused       int64 // events over quota since then
}

func (u *usage) total() int64 { return u.stored + u.events }

// Usage is what a project has sent in the period of its quota.
type Usage struct {
	Limit   int64 // 0 is none
	Period  string
	From    time.Time
	To      time.Time
	Events  int64
	Refused int64 // events over quota
}

// NewMeter returns a meter that has not started. A nil now is time.Now.
func NewMeter(cfg QuotaConfig, d *db.DB, m *Metrics, logger *zap.Logger, now func() time.Time) *Meter {
	if now == nil {
		now = time.Now
	}
	meter := &Meter{
		db: d, changed: make(chan struct{}, 1), store: NewUsageStore(d), warnings: warning.NewStore(d), metrics: m, logger: logger.Named("ingestion"), now: now,
		projects: map[int64]*usage{},
	}
	meter.quota.Store(&cfg)
	return meter
}

// SetQuota changes the quota. The events of a project that had no limit before are
// counted from now on. With another period the stored counts apply within a moment.
func (m *Meter) SetQuota(cfg QuotaConfig) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.quota.Swap(&cfg); before.Period != cfg.Period {
		m.unsaved = append(m.unsaved, m.unsavedOfPeriod()...)
		m.projects, m.from, m.to = map[int64]*usage{}, time.Time{}, time.Time{}
	}
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// flushInterval is the time between two writes of the counts, nearInterval while a
// project that is close to its quota sends.
const (
	flushInterval = 2 * time.Second
	nearInterval  = 250 * time.Millisecond
)

// Start reads the stored counts, if the database is available, and begins to
// write. Without a quota it waits for one.
func (m *Meter) Start(ctx context.Context) error {
	m.flush(ctx)
	m.service.Start()
	m.service.Go(func(drainCtx, _ context.Context) { m.run(drainCtx) })
	return nil
}

func (m *Meter) run(ctx context.Context) {
	for {
		var tick <-chan time.Time
		if m.quota.Load().enabled() {
			tick = time.After(m.interval())
		}
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
		case <-tick:
		}
		m.flush(ctx)
	}
}

// Stop writes the counts.
func (m *Meter) Stop(ctx context.Context) error {
	err := m.service.Stop(ctx)
	m.flush(ctx)
	return err
}

// Take counts the events of a request and reports whether the project's quota
// allows them. A nil meter allows all.
func (m *Meter) Take(projectID int64, events int) bool {
	if m == nil {
		return true
	}
	limit := m.quota.Load().limit(projectID)
	if limit == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.usageFor(projectID)
	if u.total() >= limit {
		u.refused += int64(events)
		m.metrics.overQuota.Add(float64(events))
		return false
	}
	u.events += int64(events)
	return true
}

// Refund undoes a Take whose events could not be kept.
func (m *Meter) Refund(projectID int64, events int) {
	if m == nil || m.quota.Load().limit(projectID) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.usageFor(projectID).events -= int64(events)
}

// Usage returns what a project has sent in the current period, as far as this
// node knows. A project without a limit is not counted.
func (m *Meter) Usage(projectID int64) Usage {
	if m == nil {
		return Usage{}
	}
	quota := m.quota.Load()
	out := Usage{Limit: quota.limit(projectID), Period: quota.Period}
	m.mu.Lock()
	defer m.mu.Unlock()
	if out.Limit > 0 {
		u := m.usageFor(projectID)
		out.Events, out.Refused = u.total(), u.storedRefused+u.refused
	}
	m.rollPeriod()
	out.From, out.To = m.from, m.to
	return out
}

// usageFor returns the usage of a project in the current period.
func (m *Meter) usageFor(projectID int64) *usage {
	m.rollPeriod()
	u := m.projects[projectID]
	if u == nil {
		u = &usage{}
		m.projects[projectID] = u
	}
	return u
}

// rollPeriod begins a new period when the clock has left the current one, in
// either direction. The counts of the old one stay to be written.
func (m *Meter) rollPeriod() {
	now := m.now()
	if !now.Before(m.from) && now.Before(m.to) {
		return
	}
	m.unsaved = append(m.unsaved, m.unsavedOfPeriod()...)
	m.projects = map[int64]*usage{}
	m.from, m.to = m.quota.Load().span(now)
}

// unsavedOfPeriod returns the counts of the current period that are not stored.
func (m *Meter) unsavedOfPeriod() []usageRow {
	var out []usageRow
	for id, u := range m.projects {
		if u.events != 0 || u.refused != 0 {
			out = append(out, usageRow{ProjectID: id, Period: m.from.Unix(), Events: u.events, Refused: u.refused})
		}
	}
	return out
}

// flush adds the counts to the database and reads the sums.
func (m *Meter) flush(ctx context.Context) {
	if !m.active() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	from, rows := m.takeUnsaved()
	slices.SortFunc(rows, func(a, b usageRow) int { // all nodes in the same order, against deadlocks
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Period, b.Period))
	})
	var stored []usageRow
	err := m.db.Tx(ctx, func(ctx context.Context) (err error) {
		if err = m.write(ctx, rows); err == nil {
			stored, err = m.store.inPeriod(ctx, from.Unix())
		}
		return err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.unsaved = append(m.unsaved, rows...)
		if !errors.Is(err, context.Canceled) {
			m.logger.Warn("usage write failed; quotas go by the counts in memory", zap.Error(err))
		}
		return
	}
	if !m.from.Equal(from) {
		return // the period ended in the meantime
	}
	for _, r := range stored {
		u := m.usageFor(r.ProjectID)
		u.stored, u.storedRefused = r.Events, r.Refused
	}
}

// interval returns the time until the next write. One server needs no shorter one: it
// knows all counts.
func (m *Meter) interval() time.Duration {
	if !m.db.Postgres() {
		return flushInterval
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, u := range m.projects {
		limit := m.quota.Load().limit(id)
		if used := u.total(); u.events > 0 && used < limit && used >= limit-limit/10 {
			return nearInterval
		}
	}
	return flushInterval
}

// active reports whether there is a quota, or counts of one that ended.
func (m *Meter) active() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.quota.Load().enabled() || len(m.unsaved) > 0 || len(m.unsavedOfPeriod()) > 0
}

// takeUnsaved returns the counts that are not stored and counts them as stored.
func (m *Meter) takeUnsaved() (from time.Time, rows []usageRow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rollPeriod()
	rows = append(m.unsaved, m.unsavedOfPeriod()...)
	m.unsaved = nil
	for _, u := range m.projects {
		u.stored, u.events, u.storedRefused, u.refused = u.stored+u.events, 0, u.storedRefused+u.refused, 0
	}
	return m.from, rows
}

// write adds rows to the database, with a warning for each project that is over
// quota.
func (m *Meter) write(ctx context.Context, rows []usageRow) error {
	for _, r := range rows {
		if err := m.store.add(ctx, r); err != nil {
			return err
		}
		if r.Refused == 0 {
			continue
		}
		w := warning.Warning{
			ProjectID: r.ProjectID, Type: KindOverQuota, Dropped: true,
			Details: map[string]any{"limit": m.quota.Load().limit(r.ProjectID), "period": m.quota.Load().Period},
		}
		if err := m.warnings.AddCount(ctx, w, r.Refused, m.now()); err != nil {
			return err
		}
	}
	return nil
}
