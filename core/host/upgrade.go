package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// upgrader starts the next generation of an instance in another process while the
// present one serves, and switches over when it is healthy. Its methods are called
// by the supervisor's goroutine only.
type upgrader struct {
	supervisor *supervisor
	current    *upgrade // nil without an upgrade
	failures   int      // consecutive failed upgrades
}

// upgrade is one attempt.
type upgrade struct {
	generation generation
	cancel     context.CancelFunc
	done       chan struct{} // closed when the rest is set

	session *startedSession
	opened  *openResult
	err     error
}

// done is closed when the current upgrade has succeeded or failed; nil without one.
func (u *upgrader) done() <-chan struct{} {
	if u.current == nil {
		return nil
	}
	return u.current.done
}

// start starts an upgrade to the configured generation after a delay. It replaces a
// running upgrade.
func (u *upgrader) start(present *conn.Session, after time.Duration) {
	u.cancel()
	s := u.supervisor
	ctx, cancel := context.WithCancel(s.drainCtx)
	up := &upgrade{generation: s.target.wanted(), cancel: cancel, done: make(chan struct{})}
	u.current = up
	s.finishing.Go(func() {
		defer close(up.done)
		defer cancel()
		if !retry.Sleep(ctx, after) {
			up.err = ctx.Err()
			return
		}
		up.session, up.opened, up.err = u.prepare(ctx, up.generation, present)
	})
}

// cancel drops the current upgrade and ends its session in the background.
func (u *upgrader) cancel() {
	up := u.current
	u.current = nil
	if up == nil {
		return
	}
	up.cancel()
	s := u.supervisor
	s.finishing.Go(func() {
		<-up.done
		if up.session != nil {
			up.session.End(s.killCtx, true)
		}
	})
}

// errExclusive ends the present session for a generation that must not run beside it.
var errExclusive = errors.New("the plugin must not run twice at once")

// prepare starts, configures, opens and probes a generation. After an error nothing is
// left of it.
func (u *upgrader) prepare(ctx context.Context, g generation, present *conn.Session) (*startedSession, *openResult, error) {
	s := u.supervisor
	s.log.Info("plugin upgrade started", zap.Uint64("generation", g.number))
	session, err := s.startSession(ctx, g, func(lifecycle.State) {})
	if err != nil {
		return nil, nil, err
	}
	s.handler.handOver(ctx, present) // so that the next session resumes behind it
	opened, err := u.probe(ctx, session.Session)
	if err != nil {
		session.End(s.killCtx, session.Alive())
		return nil, nil, err
	}
	return session, opened, nil
}

// probe opens a session and checks its health.
func (u *upgrader) probe(ctx context.Context, session *conn.Session) (*openResult, error) {
	if session.Info.GetExclusive() {
		return nil, errExclusive
	}
	opened, refused, err := u.supervisor.handler.open(ctx, session)
	switch {
	case err != nil:
		return nil, session.CallFailure(ctx, "open", err)
	case opened == nil && refused == nil:
		refused = u.supervisor.noOpenOutcome()
		fallthrough
	case opened == nil:
		if refused.Class == sdk.ClassConfig {
			return nil, configFailure(refused)
		}
		return nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "open", Message: refused.Error()}
	}
	if err := session.CheckHealth(ctx); err != nil && !errors.Is(err, conn.ErrDegraded) {
		return nil, session.HealthFailure(ctx, err)
	}
	return opened, nil
}

// finish ends an upgrade that is done and returns the session that serves. After a
// failure the present session goes on, degraded. An error means that the present
// session must end: the two must not run together, or the server stops.
func (u *upgrader) finish(present *conn.Session) (*conn.Session, error) {
	s, up := u.supervisor, u.current
	u.current = nil
	if up.err == nil {
		u.switchOver(present, up)
		return up.session.Session, nil
	}
	if s.drainCtx.Err() != nil || errors.Is(up.err, errExclusive) {
		return present, errReconfigured
	}
	var failure *lifecycle.Failure
	if !errors.As(up.err, &failure) {
		failure = &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "start", Message: up.err.Error()}
	}
	if s.target.setUpgradeError(up.generation.number, failure) {
		s.status.Enter(lifecycle.StateDegraded, lifecycle.ReasonUpgradeFailed, failure)
		u.retryLater(present, failure)
	}
	return present, nil
}

// retryLater starts an upgrade again that failed for a transient reason. Retries do not
// end, because the present session serves. It has no effect during an upgrade.
func (u *upgrader) retryLater(present *conn.Session, failed *lifecycle.Failure) {
	if u.current != nil || failed == nil || failed.State != lifecycle.StateBackoff {
		return
	}
	u.failures++
	restart := u.supervisor.host.settings().Restart
	u.start(present, max(restart.Initial, lifecycle.Delay(restart, u.failures, rand.Float64)))
}

// switchOver passes callers to the upgraded session. Unless both may serve together, it
// first waits until no caller uses the old session. The old session ends in the
// background.
func (u *upgrader) switchOver(old *conn.Session, up *upgrade) {
	s := u.supervisor
	if !up.opened.compatible {
		s.gate.Close(old)
		old.InFlight.WaitIdle(s.drainCtx, old.Timeouts.Call)
		s.handler.handOver(s.drainCtx, old)
	}
	up.opened.commit()
	s.gate.Open(up.session.Session)
	u.failures = 0
	s.target.setServed(up.session.Session)
	s.status.RecordProcess(up.session.Session, up.session.remarks)
	s.status.Enter(lifecycle.StateReady, "", nil)
	s.log.Info("plugin upgraded", zap.Uint64("generation", up.generation.number))
	s.finishing.Go(func() {
		old.End(s.killCtx, true)
		s.handler.onEnd(old)
	})
}
