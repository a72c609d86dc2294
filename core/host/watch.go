package host

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
)

// maxMissedChecks is how many consecutive health checks may fail before the process
// is ended.
const maxMissedChecks = 3

// minRecheckDelay is the pause between the report of a failed call and the health
// check that follows.
const minRecheckDelay = 20 * time.Millisecond

// watcher watches a session whose gate is open, until the instance must be opened again
// or the session ends. An upgrade may replace the session meanwhile. Each signal has
// a handler, which returns what follows.
type watcher struct {
	supervisor *supervisor
	session    *conn.Session // the one that serves
	missed     int           // consecutive failed health checks
	suspicions int           // reports of failed calls since the last tick

	// The result.
	reopen  bool  // the instance must be opened again
	answers bool  // the process answers
	end     error // why the session ends, unless reopen
}

// step is what follows a signal.
type step int

const (
	stepContinue    step = iota // wait for the next signal
	stepCheckHealth             // check the process first
	stepReturn                  // the result is set
)

func (w *watcher) watch() {
	s := w.supervisor
	tick := time.NewTicker(s.host.settings().HealthInterval)
	defer tick.Stop()
	for {
		var next step
		select {
		case <-s.drainCtx.Done():
			next = w.finish(errReconfigured)
		case <-w.session.Exited():
			next = w.onExit()
		case <-s.upgrader.done():
			next = w.onUpgradeDone()
		case <-tick.C:
			next = w.onTick()
		case <-s.mailbox.wake:
			next = w.onMessages(s.mailbox.take(w.session))
		}
		if next == stepCheckHealth {
			next = w.checkHealth()
		}
		if next == stepReturn {
			return
		}
	}
}

// finish ends the watch with an error.
func (w *watcher) finish(end error) step {
	w.end = end
	return stepReturn
}

// finishReopen ends the watch because the instance must be opened again.
func (w *watcher) finishReopen() step {
	w.reopen = true
	return stepReturn
}

// onExit handles the exit of the process.
func (w *watcher) onExit() step {
	w.answers = false
	return w.finish(w.session.ExitFailure())
}

// onUpgradeDone handles the end of an upgrade.
func (w *watcher) onUpgradeDone() step {
	next, err := w.supervisor.upgrader.finish(w.session)
	if err != nil {
		return w.finish(err)
	}
	w.session = next
	return stepContinue
}

// onTick handles the health interval.
func (w *watcher) onTick() step {
	w.suspicions = 0
	return stepCheckHealth
}

// onMessages handles messages, the most important first.
func (w *watcher) onMessages(m messages) step {
	switch {
	case m.config, m.release && w.supervisor.target.upgradeError() != nil:
		return w.onNewConfig()
	case m.failure != nil:
		w.answers = m.failure.Reason != reasonDeadlines
		return w.finish(m.failure)
	case m.reopenReason != "":
		return w.onNotConnected(m.reopenReason)
	case m.suspectReason != "":
		return w.onSuspicion()
	}
	return stepContinue
}

// onNewConfig starts an upgrade, or ends a session that must not run beside another.
func (w *watcher) onNewConfig() step {
	if w.session.Exclusive() {
		return w.finish(errReconfigured)
	}
	w.supervisor.upgrader.failures = 0
	w.supervisor.upgrader.start(w.session, 0)
	return stepContinue
}

// onNotConnected handles a plugin that lost its connection. A running upgrade connects
// again, so the session ends for it.
func (w *watcher) onNotConnected(reason string) step {
	if w.supervisor.upgrader.current != nil {
		return w.finish(errReconfigured)
	}
	w.supervisor.status.Enter(lifecycle.StateConfigured, "not_connected", errors.New(reason))
	return w.finishReopen()
}

// onSuspicion pauses before the health check that failed calls cause.
func (w *watcher) onSuspicion() step {
	s := w.supervisor
	delay := max(minRecheckDelay, lifecycle.Delay(s.host.settings().Restart, w.suspicions, rand.Float64))
	if end := s.pauseOpen(w.session, delay); end != nil {
		w.answers = w.session.Alive()
		return w.finish(end)
	}
	w.suspicions++
	return stepCheckHealth
}

// checkHealth checks the process and opens the gate when it is healthy.
func (w *watcher) checkHealth() step {
	s := w.supervisor
	switch err := w.session.CheckHealth(s.drainCtx); {
	case err == nil, errors.Is(err, conn.ErrDegraded):
		w.missed = 0
		s.reopenGate(w.session, err)
	case errors.Is(err, conn.ErrNotOpen):
		s.gate.Close(w.session)
		s.status.Enter(lifecycle.StateConfigured, "not_open", err)
		return w.finishReopen()
	case s.drainCtx.Err() != nil || !w.session.Alive():
		// The next signal explains it.
	default:
		if w.missed++; w.missed >= maxMissedChecks {
			w.answers = false
			return w.finish(w.session.HealthFailure(s.drainCtx, err))
		}
		s.status.Enter(lifecycle.StateDegraded, conn.ReasonHealth, err)
		w.recheckSoon()
	}
	return stepContinue
}

// recheckSoon requests the next health check before the next tick.
func (w *watcher) recheckSoon() {
	s, session := w.supervisor, w.session
	time.AfterFunc(session.Timeouts.Health/2, func() {
		s.mailbox.postFor(session, func(m *messages) { m.suspectReason = "health" })
	})
}
