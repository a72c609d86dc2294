package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/retry"
)

// supervisor takes one instance through its states. One goroutine (run) decides; others
// reach it through the mailbox. Its parts are the instance that callers use (embedded),
// the target generation, the status and the upgrader.
type supervisor struct {
	*instance
	host    *Host
	handler kindHandler

	service   retry.Service
	finishing sync.WaitGroup // old sessions that end in the background

	// Used by run only.
	drainCtx, killCtx context.Context // drainCtx: stop in order; killCtx: stop now
	upgrader          upgrader
	restartReason     string // why the next process starts
	processes         int    // started so far
}

func newSupervisor(h *Host, c settings.Instance) *supervisor {
	log := h.log.With(zap.String("instance", c.Name))
	box := newMailbox()
	s := &supervisor{
		instance: &instance{
			name: c.Name, gate: conn.NewGate(), forgive: h.forgiveExits, mailbox: box, metrics: h.metrics, log: log,
			target: &target{mailbox: box, cfg: c, generation: 1},
			status: status.NewTracker(c, log, h.metrics, h.notifyListeners),
		},
		host: h,
	}
	s.upgrader.supervisor = s
	s.service.Start()
	switch c.Kind {
	case settings.KindNotifier:
		s.handler = newNotifierInstance(s.instance)
	case settings.KindMatcher:
		s.handler = newMatcherInstance(s.instance)
	default:
		sink := newSinkInstance(s.instance)
		s.handler, s.status.Committed = sink, sink.CommittedThrough
	}
	return s
}

// start starts the goroutine; after stop it has no effect. It must be called once.
func (s *supervisor) start() { s.service.Go(s.run) }

// stop ends the process in order, or kills it when ctx ends. It returns when there is
// no process.
func (s *supervisor) stop(ctx context.Context) { _ = s.service.Stop(ctx) }

// configure sets the settings. A change that the process sees makes a new generation;
// otherwise an instance that waits for the operator, and an upgrade that has failed,
// try again, because the cause may be gone.
func (s *supervisor) configure(c settings.Instance) {
	digest := ""
	argv, err := s.host.executables.Command(c, s.host.settings().Dev)
	if resolved, rerr := resolveSecrets(c); err == nil && rerr == nil {
		digest = resolved.Digest(argv)
	}
	s.status.SetSettings(c)
	s.noteOtherFile(c)
	if s.target.configure(c, digest) {
		return
	}
	waits := s.target.upgradeError() != nil
	switch s.status.Get().State {
	case lifecycle.StateMisconfigured, lifecycle.StateUntrusted, lifecycle.StateIncompatible:
		waits = true
	default:
	}
	if waits {
		s.mailbox.post(func(m *messages) { m.release = true })
	}
}

// run supervises the instance until stop.
func (s *supervisor) run(drainCtx, killCtx context.Context) {
	s.drainCtx, s.killCtx = drainCtx, killCtx
	restarts := &lifecycle.Restarts{Settings: s.host.settings().Restart}
	for drainCtx.Err() == nil {
		ready, end := s.runSession()
		if drainCtx.Err() != nil {
			break
		}
		var failure *lifecycle.Failure
		if errors.As(end, &failure) {
			s.restartReason = failure.Reason
			s.waitRestart(restarts, failure, ready)
		} else {
			s.restartReason = "config"
			restarts.Reset()
		}
	}
	s.finishing.Wait()
	s.status.Enter(lifecycle.StateStopped, "stopped", nil)
}

// waitRestart waits as the failure requires: for a delay or for the operator.
func (s *supervisor) waitRestart(restarts *lifecycle.Restarts, f *lifecycle.Failure, ready time.Duration) {
	c := s.target.settings()
	if f.State != lifecycle.StateBackoff {
		s.status.Enter(f.State, f.Reason, f)
		s.waitSignal(0)
		restarts.Reset()
		return
	}
	if c.Restart == settings.RestartNever {
		s.status.Enter(lifecycle.StateStopped, f.Reason, f)
		s.waitSignal(0)
		return
	}
	s.forgiveExits(restarts)
	restarts.NoQuarantine = c.Attached() || c.Restart == settings.RestartAlways // the host does not start an attached process
	delay, quarantine := restarts.Next(time.Now(), ready, s.host.jitter(c.Use, restarts.Tries()))
	if !quarantine {
		s.status.EnterBackoff(f, delay)
		s.waitSignal(max(delay, time.Nanosecond))
		return
	}
	s.status.EnterQuarantine(f, delay)
	if s.progressed.Load() { // the cause was found meanwhile
		return
	}
	if signalled := s.waitSignal(delay); signalled {
		restarts.Reset()
	}
}

// forgiveExits forgets the exits of an instance that has made progress since the last
// call.
func (s *supervisor) forgiveExits(restarts *lifecycle.Restarts) {
	if s.progressed.Swap(false) {
		restarts.Forgive()
	}
}

// waitSignal waits for a new config, a release, the stop or, unless it is 0, for d. It
// reports whether a config or a release ended the wait.
func (s *supervisor) waitSignal(d time.Duration) (signalled bool) {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	for {
		select {
		case <-timer:
			return false
		case <-s.drainCtx.Done():
			return false
		case <-s.mailbox.wake:
			if m := s.mailbox.take(nil); m.config || m.release {
				return true
			}
		}
	}
}

// errReconfigured ends a session because of a new config or the stop.
var errReconfigured = errors.New("reconfigured")

// runSession runs the instance in one process, or in several when upgrades succeed. It
// returns how long the instance was ready, and why it ended: a *lifecycle.Failure
// or errReconfigured.
func (s *supervisor) runSession() (ready time.Duration, end error) {
	started, err := s.startSession(s.drainCtx, s.target.next(), s.onStartStep)
	if err != nil {
		return 0, err
	}
	s.status.RecordProcess(started.Session, started.remarks)
	session, answers := started.Session, true
	defer func() {
		s.upgrader.cancel()
		s.gate.Close(nil)
		if errors.Is(end, errReconfigured) {
			s.status.Enter(lifecycle.StateDraining, "", nil)
		}
		session.End(s.killCtx, answers)
		s.handler.onEnd(session)
		s.status.RecordExit(session.Conn)
		end = preferExit(session, end)
	}()
	for opens := 0; ; opens++ {
		s.status.Enter(lifecycle.StateConfigured, "", nil)
		if end = s.openInstance(session, opens); end != nil {
			return ready, end
		}
		s.upgrader.retryLater(session, s.target.upgradeError())
		since := time.Now()
		w := &watcher{supervisor: s, session: session, answers: true}
		w.watch()
		session, answers, end = w.session, w.answers, w.end
		ready += time.Since(since)
		if !w.reopen {
			return ready, end
		}
		if time.Since(since) > s.host.settings().Restart.Max {
			opens = -1
		}
	}
}

// preferExit returns why a session has ended, given what was known before its process was
// ended. A process that has died by itself neither passes health checks nor answers calls,
// and its exit may become known late: the exit is the cause then.
func preferExit(session *conn.Session, end error) error {
	failure, ok := errors.AsType[*lifecycle.Failure](end)
	silent := ok && (failure.Reason == conn.ReasonHealth || failure.Reason == reasonDeadlines)
	if silent && !session.Attached() && !session.Alive() && !session.Exit().Expected {
		return session.ExitFailure()
	}
	return end
}

// onStartStep records a step of a start outside of an upgrade.
func (s *supervisor) onStartStep(state lifecycle.State) {
	if state == lifecycle.StateStarting {
		if s.processes++; s.processes > 1 {
			s.status.RecordRestart(s.processes-1, s.restartReason)
		}
	}
	s.status.Enter(state, "", nil)
}
