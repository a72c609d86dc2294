package notifications

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

const (
	// lookEvery is how often the database is asked for what another process
	// has queued, or what may go again.
	lookEvery = 500 * time.Millisecond
	// lease is how long a process has a message before another one may try it.
	lease = 2 * time.Minute
	// callTimeout bounds one call of a notifier; it is well within the lease.
	callTimeout = time.Minute
	// maxLanes is how many destinations are served at once.
	maxLanes = 64
	// sweepEvery is how often what is too old is removed.
	sweepEvery = time.Minute
)

// Start begins to send.
func (s *Service) Start(context.Context) error {
	running, stop := context.WithCancel(context.Background())
	living, kill := context.WithCancel(context.Background())
	s.stop, s.kill = stop, kill
	s.done.Go(func() { s.dispatch(running, living) })
	s.done.Go(func() { s.sweep(running) })
	return nil
}

// Stop waits for the calls at hand; when ctx ends first they are given up. What
// was not confirmed is sent again, under the same id, after the next start.
func (s *Service) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	finished := make(chan struct{})
	go func() {
		s.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		s.kill()
		<-finished
	}
	s.kill()
	return nil
}

// dispatch sees to it that each destination with something to send is served.
func (s *Service) dispatch(ctx, living context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := s.look(ctx, living)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			if failed {
				s.log.Warn("notifications wait for the database", zap.Error(err))
			} else {
				s.log.Info("notifications go on")
			}
		}
		timer := time.NewTimer(lookEvery)
		select {
		case <-s.woken:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (s *Service) look(ctx, living context.Context) error {
	if err := s.tellLeftOut(ctx); err != nil {
		return err
	}
	now := s.clock()
	lanes, err := s.store.due(ctx, now)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		if n := s.find(l.Notifier); n != nil && n.Available() && s.enter(l, now) {
			s.done.Go(func() {
				defer s.leave(l)
				s.serve(ctx, living, l, n)
			})
		}
	}
	return nil
}

// enter reports whether the destination may be served: nobody does, it is not
// paused, and there are not too many.
func (s *Service) enter(l lane, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[l] || len(s.busy) >= maxLanes || now.Before(s.paused[l]) {
		return false
	}
	delete(s.paused, l)
	s.busy[l] = true
	return true
}

func (s *Service) leave(l lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, l)
}

// pause leaves a destination alone for a while.
func (s *Service) pause(l lane, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.clock().Add(min(max(d, 100*time.Millisecond), time.Hour))
	if until.After(s.paused[l]) {
		s.paused[l] = until
	}
}

func (s *Service) isPaused(l lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock().Before(s.paused[l])
}

// serve sends what a destination has, one after the other, until there is
// nothing more or it asks for a pause. The call under way outlives ctx.
func (s *Service) serve(ctx, living context.Context, l lane, n Notifier) {
	for ctx.Err() == nil && !s.isPaused(l) && n.Available() {
		if !sleep(ctx, s.turn(l, n.Properties())) {
			return
		}
		d, err := s.store.claim(ctx, l, s.clock(), lease)
		if err != nil || d == nil {
			return
		}
		s.send(living, l, n, d)
	}
}

// turn takes the next turn that the rate of the service allows, so that it
// never has to refuse, and returns how long that is away.
func (s *Service) turn(l lane, p sdk.NotifierProperties) time.Duration {
	if p.PerSecond <= 0 {
		return 0
	}
	if !p.PerDestination {
		l.Destination = ""
	}
	each := time.Duration(float64(time.Second) / p.PerSecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	// What was not used of the rate may be used at once, up to Burst.
	next := s.turns[l]
	if earliest := now.Add(-each * time.Duration(max(p.Burst-1, 0))); next.Before(earliest) {
		next = earliest
	}
	s.turns[l] = next.Add(each)
	return max(next.Sub(now), 0)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// send hands a message over and writes down what became of it.
func (s *Service) send(ctx context.Context, l lane, n Notifier, d *Delivery) {
	msg, err := d.notification()
	switch {
	case err != nil:
		s.settled(ctx, d, Failed, "unreadable", err.Error())
		return
	case !s.clock().Before(d.ExpiresAt):
		s.settled(ctx, d, Expired, "expired", "")
		return
	}
	if posts, err := s.posts(ctx, d.ProjectID, d.ActionID); err == nil && !posts {
		s.settled(ctx, d, Failed, "action_off", "The action is deleted or does not post any more.")
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	results, err := n.Notify(call, []*sdk.Notification{msg})
	cancel()
	r := sdk.NotifyResult{Outcome: sdk.Retry}
	switch {
	case err != nil:
		r.Err = sdk.AsError(err)
	case len(results) == 1:
		r = results[0]
	}
	s.outcome(ctx, l, d, r)
}

// outcome writes down what became of one try.
func (s *Service) outcome(ctx context.Context, l lane, d *Delivery, r sdk.NotifyResult) {
	if r.Rate != nil && r.Rate.Remaining <= 0 {
		s.pause(l, r.Rate.ResetAfter)
	}
	d.Attempts++
	code, message := "", ""
	if r.Err != nil {
		code, message = r.Err.Code, text.EllipsisChars(r.Err.Message, 500)
	}
	s.metrics.results.WithLabelValues(l.Notifier, r.Outcome.String()).Inc()
	switch {
	case r.Outcome == sdk.Delivered || r.Outcome == sdk.Duplicate:
		d.MessageID = text.EllipsisChars(r.MessageID, 200)
		s.settled(ctx, d, Delivered, "", "")
	case r.Outcome == sdk.Dropped:
		s.settled(ctx, d, Failed, code, message)
	case d.Attempts >= int64(s.cfg.MaxAttempts):
		s.settled(ctx, d, Failed, "too_many_attempts", code+": "+message)
	default:
		wait := s.backoff(d.Attempts)
		if r.Err != nil && r.Err.Class == sdk.ClassThrottled {
			wait = min(max(r.Err.RetryAfter, wait), time.Hour)
			s.pause(l, wait)
		}
		d.NextAt = s.clock().Add(wait)
		d.ErrorCode, d.Error = code, message
		s.write(ctx, d)
	}
}

// backoff is the pause after so many tries: about twice as long each time.
func (s *Service) backoff(attempts int64) time.Duration {
	d := s.cfg.RetryMin << min(attempts-1, 20)
	if d <= 0 || d > s.cfg.RetryMax {
		d = s.cfg.RetryMax
	}
	return d/2 + rand.N(d/2+1)
}

func (s *Service) settled(ctx context.Context, d *Delivery, state State, code, message string) {
	now := s.clock()
	d.State, d.SettledAt, d.ErrorCode, d.Error = state, &now, code, message
	if state == Failed {
		s.log.Warn("a notification was given up", zap.Int64("action", d.ActionID), zap.String("notifier", d.Notifier), zap.String("code", code), zap.String("error", message))
	}
	s.write(ctx, d)
}

// write stores what became of a message. When the database does not take it
// the lease ends, and the message goes out again under the same id, which the
// notifier knows.
func (s *Service) write(ctx context.Context, d *Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.store.settle(ctx, d); err != nil {
		s.log.Warn("what became of a notification is not written down", zap.Error(err))
	}
}

// sweep gives up what is too late, and forgets what is too old.
func (s *Service) sweep(ctx context.Context) {
	for {
		now := s.clock()
		_, expired := s.store.expire(ctx, now)
		var forgotten error
		for n := int64(1); n > 0 && forgotten == nil && ctx.Err() == nil; {
			n, forgotten = s.store.forget(ctx, now.Add(-s.cfg.KeepDeliveries), 500)
		}
		forgotten = errors.Join(forgotten, s.store.forgetRates(ctx, now.Add(-s.cfg.KeepDeliveries)))
		n, counted := s.store.waiting(ctx)
		if counted == nil {
			s.metrics.waiting.Set(float64(n))
		}
		if err := errors.Join(expired, forgotten, counted); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot remove what is too old", zap.Error(err))
		}
		if !sleep(ctx, sweepEvery) {
			return
		}
	}
}
