package host

import (
	"github.com/guidonhq/guidon/core/host/settings"
	"reflect"
)

// notes are what others left for the supervisor since it last looked.
type notes struct {
	config   bool     // there is a new config
	release  bool     // an operator says: try again
	suspect  string   // calls fail: look at the process
	reopen   string   // the plugin lost its connection
	misfit   *failure // the plugin says that its config is wrong
	stranger *session // the session the last three are about
}

// configure leaves a new config, if it differs. What the process does not see
// counts at once; the rest, and a secret that has changed behind its reference,
// calls for a next generation.
func (s *supervisor) configure(c settings.Instance) {
	digest := ""
	argv, err := s.host.command(c)
	if r, rerr := resolve(c); err == nil && rerr == nil {
		digest = r.digest(argv)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := reflect.DeepEqual(s.cfg.ProcessPart(), c.ProcessPart()) && (s.digest == "" || s.digest == digest)
	s.cfg = c
	s.status.Use, s.status.Required, s.status.Address = c.Use, c.Required, c.Address()
	if same {
		switch s.status.State { // what was wrong may have been put right elsewhere
		case StateMisconfigured, StateUntrusted, StateIncompatible:
			s.notes.release = true
			s.nudge()
		default:
		}
		return
	}
	s.generation++
	s.digest = digest
	s.refused = nil
	s.notes.config = true
	s.nudge()
}

// restart makes the config a new generation of itself.
func (s *supervisor) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.refused = nil
	s.notes.config = true
	s.nudge()
}

func (s *supervisor) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.release = true
	s.nudge()
}

// suspect closes the gate and asks for a look at the process.
func (s *supervisor) suspect(session *session, why string) {
	s.note(session, func(n *notes) { n.suspect = why })
}

// reopen closes the gate and asks for an Open.
func (s *supervisor) reopen(session *session, err error) {
	s.note(session, func(n *notes) { n.reopen = err.Error() })
}

// misconfigured closes the gate until the operator has changed the config.
func (s *supervisor) misconfigured(session *session, err error) {
	s.note(session, func(n *notes) {
		n.misfit = &failure{state: StateMisconfigured, reason: "rejected_config", message: err.Error()}
	})
}

// note closes the gate to the session's callers and leaves a note about it. The
// first caller who finds the gate open does so; the others come too late.
func (s *supervisor) note(session *session, write func(*notes)) {
	if !s.gate.close(session) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	write(&s.notes)
	s.notes.stranger = session
	s.nudge()
}

func (s *supervisor) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// read takes the notes; those about another session are out of date.
func (s *supervisor) read(session *session) notes {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.notes
	s.notes = notes{}
	if n.stranger != session {
		n.suspect, n.reopen, n.misfit = "", "", nil
	}
	return n
}
