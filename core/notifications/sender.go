package notifications

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
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

// sender delivers queued notifications: one at a time per destination, all
// destinations in parallel.
type sender struct {
	*base
	queue      *queue
	lanes      *lanes
	background retry.Service
}

func (s *sender) start() {
	s.background.Start()
	s.background.Go(s.dispatch)
	s.background.Go(func(drainCtx, _ context.Context) { s.sweep(drainCtx) })
}

// dispatch sees to it that each destination with something to send is served.
func (s *sender) dispatch(drainCtx, _ context.Context) {
	failing := false
	for drainCtx.Err() == nil {
		err := s.serveDue(drainCtx)
		if failed := err != nil && drainCtx.Err() == nil; failed != failing {
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
		case <-drainCtx.Done():
		}
		timer.Stop()
	}
}

// serveDue queues due summaries and starts serving the destinations with due
// notifications.
func (s *sender) serveDue(ctx context.Context) error {
	if err := s.queue.queueSummaries(ctx); err != nil {
		return err
	}
	now := s.clock()
	due, err := s.store.due(ctx, now)
	if err != nil {
		return err
	}
	for _, l := range due {
		n := s.find(l.Notifier)
		if n == nil || !n.Available() || !s.lanes.enter(l, now) {
			continue
		}
		started := s.background.Go(func(drainCtx, killCtx context.Context) {
			defer s.lanes.leave(l)
			s.serve(drainCtx, killCtx, l, n)
		})
		if !started {
			s.lanes.leave(l)
		}
	}
	return nil
}

// serve sends what a destination has, one after the other, until there is
// nothing more or it asks for a pause. The call under way outlives ctx.
func (s *sender) serve(drainCtx, killCtx context.Context, l lane, n Notifier) {
	for drainCtx.Err() == nil && !s.lanes.isPaused(l) && n.Available() {
		if !retry.Sleep(drainCtx, s.lanes.reserve(l, n.Properties())) {
			return
		}
		d, err := s.store.claim(drainCtx, l, s.clock(), lease)
		if err != nil || d == nil {
			return
		}
		s.send(killCtx, l, n, d)
	}
}

// send hands a message over and writes down what became of it.
func (s *sender) send(ctx context.Context, l lane, n Notifier, d *Delivery) {
	msg, err := d.notification()
	switch {
	case err != nil:
		s.settle(ctx, d, Failed, "unreadable", err.Error())
		return
	case !s.clock().Before(d.ExpiresAt):
		s.settle(ctx, d, Expired, "expired", "")
		return
	}
	if posting, err := s.isPosting(ctx, d.ProjectID, d.ActionID); err == nil && !posting {
		s.settle(ctx, d, Failed, "action_off", "The action is deleted or does not post any more.")
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
	s.recordOutcome(ctx, l, d, r)
}

// outcome writes down what became of one try.
func (s *sender) recordOutcome(ctx context.Context, l lane, d *Delivery, r sdk.NotifyResult) {
	if r.Rate != nil && r.Rate.Remaining <= 0 {
		s.lanes.pause(l, r.Rate.ResetAfter)
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
		s.settle(ctx, d, Delivered, "", "")
	case r.Outcome == sdk.Dropped:
		s.settle(ctx, d, Failed, code, message)
	case d.Attempts >= int64(s.cfg.MaxAttempts):
		s.settle(ctx, d, Failed, "too_many_attempts", code+": "+message)
	default:
		wait := retry.Delay(int(d.Attempts), s.cfg.RetryMin, s.cfg.RetryMax)
		if r.Err != nil && r.Err.Class == sdk.ClassThrottled {
			wait = min(max(r.Err.RetryAfter, wait), time.Hour)
			s.lanes.pause(l, wait)
		}
		d.NextAt = s.clock().Add(wait)
		d.ErrorCode, d.Error = code, message
		s.write(ctx, d)
	}
}

func (s *sender) settle(ctx context.Context, d *Delivery, state State, code, message string) {
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
func (s *sender) write(ctx context.Context, d *Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.store.settle(ctx, d); err != nil {
		s.log.Warn("what became of a notification is not written down", zap.Error(err))
	}
}

// sweep gives up what is too late, and forgets what is too old.
func (s *sender) sweep(ctx context.Context) {
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
		if !retry.Sleep(ctx, sweepEvery) {
			return
		}
	}
}
