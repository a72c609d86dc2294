package notifications

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/sdk"
)

const (
	// pollInterval is how often the database is polled for notifications that
	// another process queued or that are due for a retry.
	pollInterval = time.Second
	// lease is how long a process owns a notification before another may send
	// it.
	lease = 2 * time.Minute
	// callTimeout bounds one call of a notifier; it is well within the lease.
	callTimeout = time.Minute
	// maxLanes is how many destinations are served in parallel.
	maxLanes = 64
	// sweepEvery is how often old rows are deleted.
	sweepEvery = time.Minute
)

// sender delivers queued notifications: one at a time per destination, all
// destinations in parallel.
type sender struct {
	*base
	queue      *queue
	lanes      *lanes
	recovered  bool      // the leases of the process before are ended; of dispatch
	searched   time.Time // for leases of dead processes; of dispatch
	background retry.Service
}

func (s *sender) start() {
	s.background.Start()
	s.background.Go(s.dispatch)
	s.background.Go(func(drainCtx, _ context.Context) { s.sweep(drainCtx) })
}

// dispatch serves the destinations with due notifications until drainCtx ends.
func (s *sender) dispatch(drainCtx, _ context.Context) {
	failing := false
	for drainCtx.Err() == nil {
		err := s.serveDue(drainCtx)
		if failed := err != nil && drainCtx.Err() == nil; failed != failing {
			failing = failed
			if failed {
				s.log.Warn("notification dispatch failed", zap.Error(err))
			} else {
				s.log.Info("notification dispatch recovered")
			}
		}
		timer := time.NewTimer(pollInterval)
		select {
		case <-s.woken:
		case <-timer.C:
		case <-drainCtx.Done():
		}
		timer.Stop()
	}
}

// endOldLeases ends the leases that the process before left, once: a notification
// that it was sending is sent before newer ones.
func (s *sender) endOldLeases(ctx context.Context) error {
	if s.recovered || s.deps.Owner == "" {
		return nil
	}
	err := errors.Join(s.store.endLeases(ctx, s.holder), s.store.endHolds(ctx, s.holder))
	s.recovered = err == nil
	return err
}

// endLeasesOfDead ends the leases of processes that have died, at most once in
// pollInterval.
func (s *sender) endLeasesOfDead(ctx context.Context) error {
	if s.deps.Dead == nil || time.Since(s.searched) < pollInterval {
		return nil
	}
	holders, err := s.store.holders(ctx, s.clock())
	if err != nil {
		return err
	}
	s.searched = time.Now()
	for _, holder := range holders {
		if holder == s.holder || !s.deps.Dead(holder) {
			continue
		}
		if err := errors.Join(s.store.endLeases(ctx, holder), s.store.endHolds(ctx, holder)); err != nil {
			return err
		}
		s.log.Info("leases of a dead process ended", zap.String("holder", holder))
	}
	return nil
}

// serveDue queues due summaries and starts serving the destinations with due
// notifications.
func (s *sender) serveDue(ctx context.Context) error {
	if err := s.database.Sync(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.endOldLeases(ctx), s.endLeasesOfDead(ctx)); err != nil {
		return err
	}
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

// serve sends the due notifications of a destination, one after the other,
// until there are none or it is paused. A call that is under way outlives
// drainCtx.
func (s *sender) serve(drainCtx, killCtx context.Context, l lane, n Notifier) {
	defer s.release(l)
	for drainCtx.Err() == nil && !s.lanes.isPaused(l) && n.Available() {
		d := s.claimNext(drainCtx, l, n)
		if d == nil {
			return
		}
		s.send(killCtx, l, n, d)
	}
}

// claimNext waits until the rate of the notifier permits a call, and leases the next
// notification of a destination. It returns nil if there is none, or if another process
// sends to the destination. On PostgreSQL the rate holds for all processes together.
func (s *sender) claimNext(ctx context.Context, l lane, n Notifier) *Delivery {
	if !s.store.db.Postgres() {
		if !retry.Sleep(ctx, s.lanes.reserve(l, n.Properties())) {
			return nil
		}
		d, _ := s.store.claim(ctx, l, s.holder, s.clock(), lease) // the next poll tries again
		return d
	}
	for {
		d, wait, err := s.store.claimInLane(ctx, l, n.Properties(), s.holder, lease, s.clock)
		if err != nil || wait == 0 || !retry.Sleep(ctx, wait) {
			return d
		}
	}
}

// release lets other processes send to a destination.
func (s *sender) release(l lane) {
	if !s.store.db.Postgres() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.store.release(ctx, l, s.holder, s.clock()); err != nil {
		s.log.Warn("notification destination not released", zap.String("notifier", l.Notifier), zap.Error(err))
	}
}

// pause pauses a destination, on PostgreSQL for all processes.
func (s *sender) pause(ctx context.Context, l lane, d time.Duration) {
	until := s.lanes.pause(l, d)
	if !s.store.db.Postgres() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.store.pauseLane(ctx, l, until); err != nil {
		s.log.Warn("notification destination not paused for other servers", zap.String("notifier", l.Notifier), zap.Error(err))
	}
}

// send sends a notification and stores the result.
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
	if leased, err := s.store.isLeased(ctx, d); err == nil && !leased {
		return // its person was erased since it was claimed
	}
	if d.LeasedUntil.Sub(s.clock()) < callTimeout {
		return // the process stalled: another one may send it before the call ends
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	call, span := s.deps.Tracing.StartBatch(call, "send notification", []tracing.Origin{d.Origin})
	results, err := n.Notify(call, []*sdk.Notification{msg})
	cancel()
	r := sdk.NotifyResult{Outcome: sdk.Retry}
	switch {
	case err != nil:
		r.Err = sdk.AsError(err)
	case len(results) == 1:
		r = results[0]
	}
	endSpan(span, d, r)
	s.recordOutcome(ctx, l, d, r)
}

func endSpan(span *tracing.Span, d *Delivery, r sdk.NotifyResult) {
	span.Text("guidon.notifier", d.Notifier)
	span.Int("guidon.action_id", d.ActionID)
	span.Int("guidon.attempt", d.Attempts+1)
	if r.Outcome == sdk.Delivered || r.Outcome == sdk.Duplicate {
		span.EndWith("")
		return
	}
	span.EndWith(r.Outcome.String())
}

// recordOutcome stores the result of one attempt.
func (s *sender) recordOutcome(ctx context.Context, l lane, d *Delivery, r sdk.NotifyResult) {
	if r.Rate != nil && r.Rate.Remaining <= 0 {
		s.pause(ctx, l, r.Rate.ResetAfter)
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
	case d.Attempts >= int64(s.live.Load().MaxAttempts):
		s.settle(ctx, d, Failed, "too_many_attempts", code+": "+message)
	default:
		wait := retry.Delay(int(d.Attempts), s.cfg.RetryMin, s.cfg.RetryMax)
		if r.Err != nil && r.Err.Class == sdk.ClassThrottled {
			wait = min(max(r.Err.RetryAfter, wait), time.Hour)
			s.pause(ctx, l, wait)
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
		s.log.Warn("notification failed", zap.Int64("action", d.ActionID), zap.String("notifier", d.Notifier), zap.String("code", code), zap.String("error", message))
	}
	s.write(ctx, d)
}

// write stores the state of a notification. If that fails, the lease ends and
// the notification is sent again under the same id, which the notifier
// deduplicates.
func (s *sender) write(ctx context.Context, d *Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.store.settle(ctx, d); err != nil {
		s.log.Warn("notification state write failed", zap.Error(err))
	}
}

// sweep expires late notifications and deletes old ones.
func (s *sender) sweep(ctx context.Context) {
	for {
		now := s.clock()
		_, expired := s.store.expire(ctx, now)
		var forgotten error
		for n := int64(1); n > 0 && forgotten == nil && ctx.Err() == nil; {
			n, forgotten = s.store.deleteSettled(ctx, now.Add(-s.live.Load().KeepDeliveries), 500)
		}
		forgotten = errors.Join(forgotten, s.store.deleteRates(ctx, now.Add(-s.live.Load().KeepDeliveries)), s.store.deleteLanes(ctx, now.Add(-time.Hour)))
		n, counted := s.store.waiting(ctx)
		if counted == nil {
			s.metrics.waiting.Set(float64(n))
		}
		if err := errors.Join(expired, forgotten, counted); err != nil && ctx.Err() == nil {
			s.log.Warn("notification cleanup failed", zap.Error(err))
		}
		if !retry.Sleep(ctx, sweepEvery) {
			return
		}
	}
}
