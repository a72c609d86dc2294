package host

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// upgradeFailed is the reason of an instance whose newest generation does not
// come up, so that the one before still serves.
const upgradeFailed = "upgrade_failed"

// rival is the next generation of an instance, coming up in another process
// while the present one serves.
type rival struct {
	plan   plan
	cancel context.CancelFunc
	done   chan struct{} // closed when the rest is set

	session *session
	opening *opening
	err     error
}

// settled is closed when the rival has come up or failed; nil without a rival.
func (r *rival) settled() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

// challenge brings up the generation that is wanted, after a while, beside the
// one that serves.
func (s *supervisor) challenge(present *session, after time.Duration) {
	s.dropRival()
	s.mu.Lock()
	r := &rival{plan: plan{s.cfg, s.generation}, done: make(chan struct{})}
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.soft)
	r.cancel = cancel
	s.rival = r
	s.retiring.Go(func() {
		defer close(r.done)
		defer cancel()
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			r.err = ctx.Err()
		case <-timer.C:
			r.session, r.opening, r.err = s.prepare(ctx, r.plan, present)
		}
	})
}

// dropRival gives up the next generation, and what it has begun is taken down
// in the background.
func (s *supervisor) dropRival() {
	r := s.rival
	s.rival = nil
	if r == nil {
		return
	}
	r.cancel()
	s.retiring.Go(func() {
		<-r.done
		if r.session != nil {
			r.session.end(s.hard, true)
		}
	})
}

// errExclusive says that a generation must not run beside another one.
var errExclusive = errors.New("the plugin must not run twice at once")

// prepare brings a generation to where it could serve. When it fails, nothing is
// left of it.
func (s *supervisor) prepare(ctx context.Context, p plan, present *session) (*session, *opening, error) {
	s.log.Info("next generation of a plugin is coming up", zap.Uint64("generation", p.generation))
	session, err := s.begin(ctx, p, func(State) {})
	if err != nil {
		return nil, nil, err
	}
	s.face.handOver(ctx, present) // so that the next one begins where it can
	o, err := s.prove(ctx, session)
	if err != nil {
		session.end(s.hard, session.alive())
		return nil, nil, err
	}
	return session, o, nil
}

// prove opens a session and asks how it is.
func (s *supervisor) prove(ctx context.Context, session *session) (*opening, error) {
	if session.info.GetExclusive() {
		return nil, errExclusive
	}
	o, refused, err := s.face.open(ctx, session)
	switch {
	case err != nil:
		return nil, session.callFailed(ctx, "open", err, session.scrub)
	case o == nil && refused == nil:
		refused = s.noOutcome()
		fallthrough
	case o == nil:
		if refused.Class == sdk.ClassConfig {
			return nil, configFailure(refused)
		}
		return nil, &failure{state: StateBackoff, reason: "open", message: refused.Error()}
	}
	if err := session.healthy(ctx); err != nil {
		return nil, &failure{state: StateBackoff, reason: "health", message: err.Error()}
	}
	return o, nil
}

// judge looks at a rival that has settled: it takes over, or the present session
// goes on serving and the state says why. The error ends the life: the two may
// not live side by side, or the server stops.
func (s *supervisor) judge(present *session) (*session, error) {
	r := s.rival
	s.rival = nil
	if r.err == nil {
		return r.session, s.takeOver(present, r)
	}
	if s.soft.Err() != nil || errors.Is(r.err, errExclusive) {
		return present, errReconfigured
	}
	var why *failure
	if !errors.As(r.err, &why) {
		why = &failure{state: StateBackoff, reason: "start", message: r.err.Error()}
	}
	s.mu.Lock()
	current := r.plan.generation == s.generation
	if current {
		s.refused = why
	}
	s.mu.Unlock()
	if current {
		s.enter(StateDegraded, upgradeFailed, why)
		s.tryLater(present, why)
	}
	return present, nil
}

// tryLater tries a generation again that may come up another time. There is no
// end to it: the present one serves.
func (s *supervisor) tryLater(present *session, why *failure) {
	if why != nil && why.state == StateBackoff {
		s.fallen++
		restart := s.host.config().Restart
		s.challenge(present, max(restart.Initial, curve(restart, s.fallen, random)))
	}
}

// takeOver makes the rival the one that serves. A session that keeps something,
// or wants to be fed differently, is left by all callers first; otherwise they
// notice nothing. The old session finishes in the background.
func (s *supervisor) takeOver(old *session, r *rival) error {
	if !r.opening.alike {
		s.gate.close(old)
		old.busy.gone(s.soft, old.timeouts.Call)
		s.face.handOver(s.soft, old)
	}
	r.opening.adopt()
	s.gate.open(r.session)
	s.fallen = 0
	s.serves(r.session)
	s.occupied(r.session)
	s.enter(StateReady, "", nil)
	s.log.Info("next generation of a plugin has taken over", zap.Uint64("generation", r.plan.generation))
	s.retiring.Go(func() {
		old.end(s.hard, true)
		s.face.left(old)
	})
	return nil
}

// upgradeFailed says why the wanted generation does not serve, or is nil.
func (s *supervisor) upgradeFailed() *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}
