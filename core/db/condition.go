package db

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db/logcheck"
)

// whatToDo is the advice to an operator whose SQLite file is damaged.
const whatToDo = "run guidon check and restore a backup"

// Condition is the state of the database, as far as it is known.
type Condition struct {
	// State is "ok", or "damaged" when SQLite found a malformed page or commits
	// were lost. The server of PostgreSQL checks its files itself: it is "waiting"
	// from the start until it is ready, and "lost" while it does not answer later.
	State string `json:"state"`
	// Message says what is the matter and what to do.
	Message string `json:"message,omitempty"`
	// Since is when the state "waiting" or "lost" began.
	Since *time.Time `json:"since,omitempty"`
	// CheckedAt is when the check after the start ended; nil before that, if it
	// did not end in time, and on PostgreSQL.
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// Log describes the damage of the write-ahead log at the start, if any.
	Log *LogDamage `json:"log,omitempty"`
}

// Degraded implements the interface of core/web/health.
func (c Condition) Degraded() bool { return c.State != "ok" }

// watch collects what is found out about the SQLite file. Its methods may be
// called concurrently.
type watch struct {
	log       atomic.Pointer[zap.Logger]
	malformed prometheus.Counter // errors of a malformed file
	queries   *prometheus.HistogramVec
	wrap      func(driver.Connector) driver.Connector // may be nil

	mu    sync.Mutex
	state Condition
	cause string // the malformed error that was announced
}

func newWatch() *watch {
	w := &watch{state: Condition{State: "ok"}, queries: newQuerySeconds(), malformed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "guidon_database_malformed_total", Help: "Statements that failed because a page of the SQLite file is malformed.",
	})}
	w.log.Store(zap.NewNop())
	return w
}

// Condition returns the state of the database as of the last check. It runs no
// query.
func (d *DB) Condition() Condition {
	if d.waiting != nil {
		return d.waiting.condition()
	}
	if d.watch == nil {
		return Condition{State: "ok"}
	}
	d.watch.mu.Lock()
	defer d.watch.mu.Unlock()
	return d.watch.state
}

// logTo logs what is known about damage, and what is found later.
func (w *watch) logTo(log *zap.Logger, name string) {
	w.log.Store(log)
	if l := w.state.Log; l != nil {
		log.Error("database write-ahead log damaged", zap.String("database", name), zap.Int("corrected", l.Corrected),
			zap.Int("lost_commits", l.LostCommits), zap.String("kept", l.Kept))
	}
}

// register registers the metrics; reg may be nil.
func (d *DB) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	if err := errors.Join(reg.Register(collector{d}), reg.Register(d.queries), d.limiter.Register(reg)); err != nil || d.watch == nil {
		return err
	}
	damaged := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "guidon_database_damaged", Help: "1 while the SQLite file is known to be damaged, else 0.",
	}, func() float64 {
		if d.Condition().Degraded() {
			return 1
		}
		return 0
	})
	return errors.Join(reg.Register(d.watch.malformed), reg.Register(damaged))
}

// LogDamage describes a damaged write-ahead log that was found at the start.
type LogDamage = logcheck.Damage

// logDamaged records the damage of the write-ahead log.
func (w *watch) logDamaged(d *LogDamage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Log = d; d.LostCommits > 0 {
		w.state.State = "damaged"
		w.state.Message = fmt.Sprintf("the write-ahead log was damaged and at least %d commits are lost; %s", d.LostCommits, whatToDo)
	}
}

// found records a malformed page, and logs it unless the same was logged last.
func (w *watch) found(cause string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.State, w.state.Message = "damaged", cause+"; "+whatToDo
	if w.cause != cause {
		w.cause = cause
		w.log.Load().Error("database damaged", zap.String("error", cause), zap.String("action", whatToDo))
	}
}

// checked records that the check ended without a problem.
func (w *watch) checked(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.CheckedAt = &at
}
