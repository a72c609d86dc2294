package status

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/text"
)

// Tracker keeps the status of an instance, logs changes and notifies listeners.
// Its methods are safe for concurrent use.
type Tracker struct {
	log     *zap.Logger
	metrics *metrics.Metrics
	notify  func(Status)
	// Committed returns a sink's committed sequence number; nil for other kinds. Set it
	// before the first use.
	Committed func() uint64

	failures atomic.Int32 // in a row, of calls for events, notifications or filters

	violations, refusals rate.Sometimes // limit log lines that each call may cause

	mu     sync.Mutex
	status Status
}

// maxFailures is how many failures in a row make an instance degraded.
const maxFailures = 5

// reasonFailing is the reason of an instance that is degraded for its failures.
const reasonFailing = "failing"

// NewTracker returns the tracker of a discovered instance. notify receives each change of
// state.
func NewTracker(c settings.Instance, log *zap.Logger, m *metrics.Metrics, notify func(Status)) *Tracker {
	m.SetState(c.Name, lifecycle.StateDiscovered)
	perCall := func() rate.Sometimes { return rate.Sometimes{First: 10, Interval: time.Second} }
	return &Tracker{log: log, metrics: m, notify: notify, violations: perCall(), refusals: perCall(), status: Status{
		Name: c.Name, Kind: c.Kind, Use: c.Use, Required: c.Required, Address: c.Address(),
		State: lifecycle.StateDiscovered, Since: time.Now().UTC(),
	}}
}

// Get returns the current status.
func (t *Tracker) Get() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot()
}

// snapshot copies the status. The caller holds the lock.
func (t *Tracker) snapshot() Status {
	out := t.status
	if t.Committed != nil {
		out.CommittedThrough = t.Committed()
	}
	return out
}

// update changes the status and notifies listeners of a new state.
func (t *Tracker) update(change func(*Status)) {
	t.mu.Lock()
	before := t.status.State
	change(&t.status)
	now := t.snapshot()
	t.mu.Unlock()
	if now.State == before {
		return
	}
	t.metrics.SetState(now.Name, now.State)
	t.notify(now)
}

// SetSettings copies the settings that the status contains.
func (t *Tracker) SetSettings(c settings.Instance) {
	t.update(func(st *Status) { st.Use, st.Required, st.Address = c.Use, c.Required, c.Address() })
}

// SetHint sets the hint and logs a new one.
func (t *Tracker) SetHint(hint string) {
	var changed bool
	t.update(func(st *Status) { changed, st.Hint = st.Hint != hint, hint })
	if changed && hint != "" {
		t.log.Warn("plugin hint", zap.String("hint", hint))
	}
}

// SetInstalled sets the checksum of the installed file, which is not the one that runs.
func (t *Tracker) SetInstalled(sha256 string) {
	if t.Get().InstalledSHA256 != sha256 {
		t.update(func(st *Status) { st.InstalledSHA256 = sha256 })
	}
}

// Enter sets the state, and the last error unless err is nil, and logs both.
func (t *Tracker) Enter(state lifecycle.State, reason string, err error) {
	t.update(func(st *Status) {
		if state == lifecycle.StateReady && t.failures.Load() >= maxFailures {
			state, reason = lifecycle.StateDegraded, reasonFailing
		}
		if st.State != state {
			st.State, st.Since = state, time.Now().UTC()
		}
		st.Reason, st.NextStart = reason, nil
		if err != nil {
			st.setError(err)
		}
	})
	fields := []zap.Field{zap.String("state", string(state))}
	if reason != "" {
		fields = append(fields, zap.String("reason", reason))
	}
	switch {
	case err != nil:
		t.log.Warn("plugin "+string(state), append(fields, zap.String("error", lifecycle.OneLine(err)))...)
	case state == lifecycle.StateReady, state == lifecycle.StateStopped:
		t.log.Info("plugin "+string(state), fields...)
	default:
		t.log.Debug("plugin "+string(state), fields...)
	}
}

// RecordFailure counts a call that did not do its work. Several in a row make a ready
// instance degraded, until RecordSuccess.
func (t *Tracker) RecordFailure(err error) {
	if t.failures.Add(1) < maxFailures {
		return
	}
	var entered bool
	t.update(func(st *Status) {
		if entered = st.State == lifecycle.StateReady; entered {
			st.State, st.Since, st.Reason = lifecycle.StateDegraded, time.Now().UTC(), reasonFailing
		}
		if st.Reason == reasonFailing {
			st.setError(err)
		}
	})
	if entered {
		t.log.Warn("plugin degraded", zap.String("reason", reasonFailing), zap.String("error", lifecycle.OneLine(err)))
	}
}

// RecordSuccess ends a row of failures.
func (t *Tracker) RecordSuccess() {
	if t.failures.Load() == 0 || t.failures.Swap(0) < maxFailures {
		return
	}
	var recovered bool
	t.update(func(st *Status) {
		if recovered = st.Reason == reasonFailing; recovered {
			st.State, st.Since, st.Reason = lifecycle.StateReady, time.Now().UTC(), ""
		}
	})
	if recovered {
		t.log.Info("plugin ready", zap.String("state", string(lifecycle.StateReady)))
	}
}

// EnterBackoff sets the state between a failure and the next start.
func (t *Tracker) EnterBackoff(f *lifecycle.Failure, delay time.Duration) {
	t.update(func(st *Status) {
		now := time.Now().UTC()
		next := now.Add(delay)
		st.State, st.Since, st.Reason, st.NextStart = lifecycle.StateBackoff, now, f.Reason, &next
		st.setError(f)
	})
	t.log.Warn("plugin restart scheduled", zap.String("reason", f.Reason), zap.String("error", f.Message), zap.Duration("delay", delay))
}

// EnterQuarantine sets the state of an instance that failed too often and is started
// again after d.
func (t *Tracker) EnterQuarantine(f *lifecycle.Failure, d time.Duration) {
	t.update(func(st *Status) {
		now := time.Now().UTC()
		next := now.Add(d)
		st.State, st.Since, st.Reason, st.NextStart = lifecycle.StateQuarantined, now, f.Reason, &next
		st.setError(f)
	})
	t.log.Warn("plugin quarantined", zap.String("reason", f.Reason), zap.String("error", f.Message), zap.Duration("for", d))
}

// RecordRestart counts a process after the first.
func (t *Tracker) RecordRestart(restarts int, reason string) {
	t.update(func(st *Status) { st.Restarts = restarts })
	t.metrics.Restarts.WithLabelValues(t.Get().Name, reason).Inc()
}

// RecordProcess records the process of a session and the plugin's description.
func (t *Tracker) RecordProcess(s *conn.Session, remarks []wire.Diagnostic) {
	t.update(func(st *Status) {
		if st.Generation != s.Generation {
			t.failures.Store(0) // those of another config
		}
		st.PID, st.Generation, st.Diagnostics = s.PID(), s.Generation, remarks
		st.SHA256, st.InstalledSHA256, st.Unverified = "", "", s.Settings.Unverified()
		if s.Settings.External() {
			st.SHA256 = filepath.Base(s.Executable)
		}
		st.Plugin, st.Version, st.SDK = text.Ellipsis(s.Info.GetName(), 100), text.Ellipsis(s.Info.GetVersion(), 100), text.Ellipsis(s.Info.GetSdk(), 100)
	})
}

// RecordExit records how the process ended, if it has.
func (t *Tracker) RecordExit(c *conn.Conn) {
	t.update(func(st *Status) {
		st.PID = 0
		if !c.Alive() {
			exit := c.Exit()
			st.Exit = &exit
		}
	})
}

// RecordViolation records an answer that violates the contract and logs it: the first
// ten, and then one each second, as every call may have such an answer.
func (t *Tracker) RecordViolation(v *wire.ContractViolation) {
	t.update(func(st *Status) { st.setError(v) })
	t.violations.Do(func() {
		t.log.Error("plugin violated the contract", zap.String("violation", v.Kind), zap.String("error", v.Detail))
	})
}

// LogRefusal logs that the plugin calls a message of the host invalid, as often as
// RecordViolation.
func (t *Tracker) LogRefusal(message string) {
	t.refusals.Do(func() { t.log.Error("plugin rejected a message of the host", zap.String("error", message)) })
}

// setError sets the last error, with the diagnostics and the exit of a Failure.
func (st *Status) setError(err error) {
	now := time.Now().UTC()
	st.LastError, st.LastErrorAt = lifecycle.OneLine(err), &now
	if f, ok := errors.AsType[*lifecycle.Failure](err); ok {
		st.Diagnostics = f.Diagnostics
		if f.Exit != nil {
			st.Exit = f.Exit
		}
	}
}
