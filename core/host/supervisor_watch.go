package host

import (
	"errors"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// missedChecks is how many health checks in a row may fail before the process
// is ended.
const missedChecks = 3

// unsuitable says why the plugin cannot be used as configured, or "".
func unsuitable(info *pluginv1.InfoResponse, c settings.Instance) string {
	switch {
	case info.GetName() == "" || info.GetVersion() == "":
		return "the plugin does not say what it is"
	case c.Attached() && info.GetName() != c.Use:
		return "the plugin " + c.Use + " says that it is " + info.GetName()
	case !c.External() && info.GetName() != c.Use:
		return "the bundled plugin " + c.Use + " says that it is " + info.GetName()
	case !slices.Contains(info.GetKinds(), kinds[c.Kind]):
		return "the plugin " + info.GetName() + " is not a " + c.Kind
	}
	return ""
}

// connect opens the instance and the gate. As long as the process lives, errors
// that may pass are tried again, later and later; so is an instance that has
// been open before in this process, because it lost its connection each time.
func (s *supervisor) connect(session *session, opens int) error {
	for n := opens; ; n++ {
		if n > 0 {
			if end := s.pause(session, curve(s.host.config().Restart, n, random)); end != nil {
				return end
			}
		}
		o, refused, err := s.face.open(s.soft, session)
		switch {
		case err != nil:
			return session.callFailed(s.soft, "open", err, session.scrub)
		case o != nil:
			o.adopt()
			s.serves(session)
			s.readmit(session)
			return nil
		case refused == nil:
			refused = s.noOutcome()
		}
		if refused.Class == sdk.ClassConfig {
			return configFailure(refused)
		}
		s.enter(StateConfigured, "open_failed", refused)
		if end := s.pause(session, refused.RetryAfter); end != nil {
			return end
		}
	}
}

// noOutcome is an answer to Open that says nothing.
func (s *supervisor) noOutcome() *sdk.Error {
	s.host.metrics.breaches.WithLabelValues(s.name, "no_outcome").Inc()
	return &sdk.Error{Class: sdk.ClassTransient, Code: "contract_breach", Message: "open was neither done nor refused"}
}

// configFailure is an Open that only another config can help.
func configFailure(err *sdk.Error) *failure {
	f := &failure{state: StateMisconfigured, reason: err.Code, message: err.Error()}
	f.diagnostics = []Diagnostic{{Severity: "error", Pointer: err.Pointer, Summary: err.Message}}
	return f
}

// pause waits between two tries of Open. It returns why the life is over.
func (s *supervisor) pause(session *session, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-s.soft.Done():
			return errReconfigured
		case <-session.exited:
			return s.died(session)
		case <-s.wake:
			if n := s.read(session); n.config {
				return errReconfigured
			} else if n.release {
				return nil
			}
		}
	}
}

// watch looks after a session whose gate is open, until the instance has to be
// opened again or the life is over. Meanwhile a next generation may take over:
// then watch looks after that one, and returns it. answers says whether the
// process can be talked to.
func (s *supervisor) watch(session *session) (now *session, again, answers bool, end error) {
	tick := time.NewTicker(s.host.config().HealthInterval)
	defer tick.Stop()
	missed, scares := 0, 0
	for {
		select {
		case <-s.soft.Done():
			return session, false, true, errReconfigured
		case <-session.exited:
			return session, false, false, s.died(session)
		case <-s.rival.settled():
			next, end := s.judge(session)
			if end != nil {
				return session, false, true, end
			}
			session = next
			continue
		case <-tick.C:
			scares = 0
		case <-s.wake:
			n := s.read(session)
			switch {
			case n.config, n.release && s.upgradeFailed() != nil:
				if session.exclusive() {
					return session, false, true, errReconfigured
				}
				s.fallen = 0
				s.challenge(session, 0)
				continue
			case n.misfit != nil:
				return session, false, true, n.misfit
			case n.reopen != "" && s.rival != nil:
				return session, false, true, errReconfigured // the next one will do better
			case n.reopen != "":
				s.enter(StateConfigured, "not_connected", errors.New(n.reopen))
				return session, true, true, nil
			case n.suspect == "":
				continue
			}
			if end := s.pause(session, max(20*time.Millisecond, curve(s.host.config().Restart, scares, random))); end != nil {
				return session, false, session.alive(), end
			}
			scares++
		}
		switch err := session.healthy(s.soft); {
		case err == nil:
			missed = 0
			s.readmit(session)
		case errors.Is(err, errNotOpen):
			s.gate.close(session)
			return session, true, true, nil
		case s.soft.Err() != nil || !session.alive():
			// The next round says why.
		default:
			if missed++; missed >= missedChecks {
				return session, false, false, &failure{state: StateBackoff, reason: "health", message: err.Error()}
			}
			s.enter(StateDegraded, "health", err)
			s.hurry(session)
		}
	}
}

// readmit opens the gate: after an Open, or after a scare.
func (s *supervisor) readmit(session *session) {
	session.late.Store(0)
	state, reason := StateReady, ""
	why := s.upgradeFailed()
	if why != nil {
		state, reason = StateDegraded, upgradeFailed
	}
	if st := s.Status(); st.State != state || st.Reason != reason || s.gate.current() == nil {
		if why != nil {
			s.enter(state, reason, why)
		} else {
			s.enter(state, reason, nil)
		}
		s.gate.open(session)
	}
}

// hurry asks for the next health check soon.
func (s *supervisor) hurry(session *session) {
	time.AfterFunc(session.timeouts.Health/2, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notes.suspect, s.notes.stranger = "health", session
		s.nudge()
	})
}

// died is the end of a process that nobody asked to end.
func (s *supervisor) died(session *session) *failure {
	return &failure{state: StateBackoff, reason: session.exit().reason(), message: session.exit().String()}
}
