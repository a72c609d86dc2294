package ingestion

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
)

// KindOverQuota is the type of the warning that events were not taken because
// the project had sent as many as it may.
const KindOverQuota = "events_over_quota"

// Meter counts what projects send and says who has sent as much as they may.
// It decides from memory; every few seconds it adds what it counted to the
// database, where the meters of all nodes meet and a restart finds its numbers
// again. So together nodes may let a little more through than a quota says, and
// a crash forgets a few seconds; while the database is away the meter goes on
// with what it knows.
type Meter struct {
	cfg     QuotaConfig
	store   *store
	metrics *Metrics
	logger  *zap.Logger
	now     func() time.Time

	mu       sync.Mutex
	from, to time.Time        // the period
	projects map[int64]*gauge // in the period
	old      []usageRow       // counted in periods that are over, not written yet

	stop context.CancelFunc
	done sync.WaitGroup
}

// gauge is what a project has sent in the period.
type gauge struct {
	stored  int64 // as the database had it, of all nodes, and what is being written
	events  int64 // taken since then
	lost    int64 // not taken, as the database had it and what is being written
	refused int64 // not taken since then
}

func (g *gauge) total() int64 { return g.stored + g.events }

// Usage is what a project has sent in the period of its quota.
type Usage struct {
	Limit   int64 // 0 is none
	Period  string
	From    time.Time
	To      time.Time
	Events  int64
	Refused int64 // events that were not taken
}

// NewMeter returns a meter that has not started. now is the clock; nil is the
// real one.
func NewMeter(cfg Config, d *db.DB, m *Metrics, logger *zap.Logger, now func() time.Time) *Meter {
	if now == nil {
		now = time.Now
	}
	return &Meter{cfg: cfg.Quota, store: &store{d}, metrics: m, logger: logger.Named("ingestion"), now: now, projects: map[int64]*gauge{}}
}

// meterPause is the time between two writes of what was counted.
const meterPause = 2 * time.Second

// Start reads what was counted before, if the database is there, and begins to
// write. Without a quota it does nothing.
func (m *Meter) Start(ctx context.Context) error {
	if !m.cfg.on() {
		return nil
	}
	m.flush(ctx)
	running, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() {
		for sleep(running, meterPause) {
			m.flush(running)
		}
	})
	return nil
}

// Stop writes what was counted and waits.
func (m *Meter) Stop(ctx context.Context) error {
	if m.stop != nil {
		m.stop()
		m.done.Wait()
		m.flush(ctx)
	}
	return nil
}

// Take counts a request of so many events and reports whether the project may
// send it. A nil meter lets everything through.
func (m *Meter) Take(projectID int64, events int) bool {
	if m == nil || !m.cfg.on() {
		return true
	}
	limit := m.cfg.limit(projectID)
	if limit == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.of(projectID)
	if g.total() >= limit {
		g.refused += int64(events)
		m.metrics.overQuota.Add(float64(events))
		return false
	}
	g.events += int64(events)
	return true
}

// GiveBack undoes a Take whose events could not be kept after all.
func (m *Meter) GiveBack(projectID int64, events int) {
	if m == nil || m.cfg.limit(projectID) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(projectID).events -= int64(events)
}

// Usage returns what a project has sent in this period, as far as this node
// knows. Projects without a limit are not counted.
func (m *Meter) Usage(projectID int64) Usage {
	if m == nil {
		return Usage{}
	}
	u := Usage{Limit: m.cfg.limit(projectID), Period: m.cfg.Period}
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.Limit > 0 {
		g := m.of(projectID)
		u.Events, u.Refused = g.total(), g.lost+g.refused
	}
	m.turn()
	u.From, u.To = m.from, m.to
	return u
}

// of returns the gauge of a project in the current period.
func (m *Meter) of(projectID int64) *gauge {
	m.turn()
	g := m.projects[projectID]
	if g == nil {
		g = &gauge{}
		m.projects[projectID] = g
	}
	return g
}

// turn begins a new period when the clock has left the old one, in whichever
// direction: what was counted in the old one is still to be written.
func (m *Meter) turn() {
	now := m.now()
	if !now.Before(m.from) && now.Before(m.to) {
		return
	}
	m.old = append(m.old, m.counted()...)
	m.projects = map[int64]*gauge{}
	m.from, m.to = m.cfg.span(now)
}

// counted returns what is not written yet of the period.
func (m *Meter) counted() []usageRow {
	var out []usageRow
	for id, g := range m.projects {
		if g.events != 0 || g.refused != 0 {
			out = append(out, usageRow{ProjectID: id, Period: m.from.Unix(), Events: g.events, Refused: g.refused})
		}
	}
	return out
}

// flush adds what was counted to the database and reads what it has then.
func (m *Meter) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	m.mu.Lock()
	m.turn()
	from, rows := m.from, append(m.old, m.counted()...)
	m.old = nil
	for _, g := range m.projects {
		g.stored, g.events, g.lost, g.refused = g.stored+g.events, 0, g.lost+g.refused, 0
	}
	m.mu.Unlock()
	slices.SortFunc(rows, func(a, b usageRow) int { // an order that all nodes share
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Period, b.Period))
	})
	var now []usageRow
	err := m.store.tx(ctx, func(ctx context.Context) (err error) {
		if err = m.write(ctx, rows); err == nil {
			now, err = m.store.usage(ctx, from.Unix())
		}
		return err
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.old = append(m.old, rows...)
		if !errors.Is(err, context.Canceled) {
			m.logger.Warn("cannot write what projects have sent; quotas go by what is known", zap.Error(err))
		}
		return
	}
	if !m.from.Equal(from) {
		return // the period ended meanwhile
	}
	for _, r := range now {
		g := m.of(r.ProjectID)
		g.stored, g.lost = r.Events, r.Refused
	}
}

// write adds rows to the database, with a warning for each project that was
// refused something.
func (m *Meter) write(ctx context.Context, rows []usageRow) error {
	for i := range rows {
		r := &rows[i]
		if err := m.store.addUsage(ctx, r); err != nil {
			return err
		}
		if r.Refused == 0 {
			continue
		}
		at := m.now()
		w := warningRow{
			ProjectID: r.ProjectID, Type: KindOverQuota, Hour: at.Unix() / 3600, Dropped: true, Count: r.Refused,
			FirstAt: at.UnixMicro(), LastAt: at.UnixMicro(),
			Details: detailsJSON(map[string]any{"limit": m.cfg.limit(r.ProjectID), "period": m.cfg.Period}),
		}
		if err := m.store.addWarning(ctx, &w); err != nil {
			return err
		}
	}
	return nil
}
