package host

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// missedChecks is how many health checks in a row may fail before the process
// is ended.
const missedChecks = 3

// unsuitable says why the plugin cannot be used as configured, or "".
func unsuitable(info *pluginv1.InfoResponse, c InstanceConfig) string {
	switch {
	case info.GetName() == "" || info.GetVersion() == "":
		return "the plugin does not say what it is"
	case !c.external() && info.GetName() != c.Use:
		return "the bundled plugin " + c.Use + " says that it is " + info.GetName()
	case c.Kind == KindSink && !slices.Contains(info.GetKinds(), pluginv1.Kind_KIND_SINK):
		return "the plugin " + info.GetName() + " is not a sink"
	}
	return ""
}

// callFailed is a failed call of the start-up sequence: a dead process explains
// itself, otherwise the call does.
func (s *supervisor) callFailed(session *session, method string, err error) *failure {
	if session.proc.within(s.soft, 100*time.Millisecond) {
		return &failure{state: StateBackoff, reason: "exit", message: session.proc.exit.String()}
	}
	return &failure{state: StateBackoff, reason: method, message: session.scrub.clean(method + ": " + status.Convert(err).Message())}
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
		through := s.sink.resumeAt()
		raise(&session.highest, through)
		out, err := session.open(s.soft, through)
		switch {
		case err != nil:
			return s.callFailed(session, "open", err)
		case out.GetOpened() && out.GetProperties() != nil:
			session.staging.Store(s.sink.opened(propertiesFromProto(out.GetProperties())))
			s.readmit(session)
			return nil
		}
		refused := errorFromProto(out.GetError(), session.scrub)
		if refused == nil {
			refused = &sdk.Error{Class: sdk.ClassTransient, Code: "contract_breach", Message: "open was neither done nor refused"}
			s.host.metrics.breaches.WithLabelValues(s.name, "no_outcome").Inc()
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
		case <-session.proc.exited:
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
// opened again or the life is over. answers says whether the process can be
// talked to.
func (s *supervisor) watch(session *session) (again, answers bool, end error) {
	tick := time.NewTicker(s.host.config().HealthInterval)
	defer tick.Stop()
	missed, scares := 0, 0
	for {
		select {
		case <-s.soft.Done():
			return false, true, errReconfigured
		case <-session.proc.exited:
			return false, false, s.died(session)
		case <-tick.C:
			scares = 0
		case <-s.wake:
			n := s.read(session)
			switch {
			case n.config:
				return false, true, errReconfigured
			case n.misfit != nil:
				return false, true, n.misfit
			case n.reopen != "":
				s.enter(StateConfigured, "not_connected", errors.New(n.reopen))
				return true, true, nil
			case n.suspect == "":
				continue
			}
			if end := s.pause(session, max(20*time.Millisecond, curve(s.host.config().Restart, scares, random))); end != nil {
				return false, session.proc.alive(), end
			}
			scares++
		}
		switch err := session.healthy(s.soft); {
		case err == nil:
			missed = 0
			s.readmit(session)
		case errors.Is(err, errNotOpen):
			s.gate.close(session)
			return true, true, nil
		case s.soft.Err() != nil || !session.proc.alive():
			// The next round says why.
		default:
			if missed++; missed >= missedChecks {
				return false, false, &failure{state: StateBackoff, reason: "health", message: err.Error()}
			}
			s.enter(StateDegraded, "health", err)
			s.hurry(session)
		}
	}
}

// readmit opens the gate: after an Open, or after a scare.
func (s *supervisor) readmit(session *session) {
	session.late.Store(0)
	if st := s.Status(); st.State != StateReady || s.gate.current() == nil {
		s.enter(StateReady, "", nil)
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
	reason := "exit"
	if session.proc.exit.Signal != "" {
		reason = "signal"
	}
	return &failure{state: StateBackoff, reason: reason, message: session.proc.exit.String()}
}
