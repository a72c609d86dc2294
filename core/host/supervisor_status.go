package host

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Status returns the instance's state of the moment.
func (s *supervisor) Status() InstanceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot()
}

// snapshot copies the status. The lock is held.
func (s *supervisor) snapshot() InstanceStatus {
	out := s.status
	if s.sink != nil {
		out.CommittedThrough = s.sink.resumeAt()
	}
	return out
}

// enter puts the instance into a state, keeps err as the last error, and tells
// everybody.
func (s *supervisor) enter(state State, reason string, err error) {
	s.update(func(st *InstanceStatus) {
		if st.State != state {
			st.State, st.Since = state, time.Now().UTC()
		}
		st.Reason, st.NextStart = reason, nil
		if err != nil {
			s.failedWith(st, err)
		}
	})
	fields := []zap.Field{zap.String("state", string(state))}
	if reason != "" {
		fields = append(fields, zap.String("reason", reason))
	}
	switch {
	case err != nil:
		s.log.Warn("plugin "+string(state), append(fields, zap.String("error", oneLine(err)))...)
	case state == StateReady, state == StateStopped:
		s.log.Info("plugin "+string(state), fields...)
	default:
		s.log.Debug("plugin "+string(state), fields...)
	}
}

// failedWith keeps an error, and the diagnostics it carries.
func (s *supervisor) failedWith(st *InstanceStatus, err error) {
	now := time.Now().UTC()
	st.LastError, st.LastErrorAt = oneLine(err), &now
	if f, ok := errors.AsType[*failure](err); ok {
		st.Diagnostics = f.diagnostics
		if f.exit != nil {
			st.Exit = f.exit
		}
	}
}

// delayed is the state between an exit and the next start.
func (s *supervisor) delayed(why *failure, delay time.Duration) {
	s.update(func(st *InstanceStatus) {
		next := time.Now().UTC().Add(delay)
		st.State, st.Since, st.Reason, st.NextStart = StateBackoff, time.Now().UTC(), why.reason, &next
		s.failedWith(st, why)
	})
}

// counted notes that there was a process, and whether it was not the first.
func (s *supervisor) counted() {
	if s.processes++; s.processes == 1 {
		return
	}
	s.update(func(st *InstanceStatus) { st.Restarts = s.processes - 1 })
	s.host.metrics.restarts.WithLabelValues(s.name, s.because).Inc()
}

// occupied notes the process the instance lives in, and what that says it is.
func (s *supervisor) occupied(session *session) {
	info := session.info
	s.update(func(st *InstanceStatus) {
		st.PID, st.Generation, st.Diagnostics = session.pid(), session.generation, session.remarks
		st.SHA256, st.Unverified = "", session.cfg.Unverified()
		if session.cfg.External() {
			st.SHA256 = filepath.Base(session.argv[0])
		}
		st.Plugin, st.Version, st.SDK = clip(info.GetName(), 100), clip(info.GetVersion(), 100), clip(info.GetSdk(), 100)
	})
}

// serves notes the config that is proven to work.
func (s *supervisor) serves(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good = &plan{session.cfg, session.generation}
	if session.generation == s.generation {
		s.refused, s.digest = nil, session.digest
	}
}

// exited notes how the process ended, if it has.
func (s *supervisor) exited(p *peer) {
	s.update(func(st *InstanceStatus) {
		st.PID = 0
		if !p.alive() {
			exit := p.exit()
			st.Exit = &exit
		}
	})
}

// breached notes an answer that is not believed.
func (s *supervisor) breached(b *breach) {
	s.update(func(st *InstanceStatus) { s.failedWith(st, b) })
	s.log.Error("plugin broke the contract", zap.String("breach", b.kind), zap.String("error", b.detail))
}

// update changes the status and tells those who listen.
func (s *supervisor) update(change func(*InstanceStatus)) {
	s.mu.Lock()
	before := s.status.State
	change(&s.status)
	now := s.snapshot()
	s.mu.Unlock()
	if now.State == before {
		return
	}
	s.host.metrics.enter(s.name, now.State)
	s.host.mu.Lock()
	listeners := s.host.onChange
	s.host.mu.Unlock()
	for _, fn := range listeners {
		fn(now)
	}
}

// raise makes v at least n.
func raise(v *atomic.Uint64, n uint64) {
	for {
		old := v.Load()
		if n <= old || v.CompareAndSwap(old, n) {
			return
		}
	}
}
