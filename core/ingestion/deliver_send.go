package ingestion

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// The bounds of what a sink may ask us to wait for.
const (
	minThrottle = 100 * time.Millisecond
	maxThrottle = time.Hour
)

// trial is what was tried with records before.
type trial struct {
	internal int  // how often the plugin may still fail internally
	alone    bool // they may bring the plugin down: nothing else is sent meanwhile
	tries    int  // failures that may have passed
	since    time.Time
}

func (d *delivery) firstTrial() trial { return trial{internal: d.cfg.Deliver.MaxInternal} }

// again counts a failure that may pass, and reports whether it was the last
// that is accepted.
func (t *trial) again(c RetryConfig, now time.Time) (last bool) {
	if t.tries++; t.tries == 1 {
		t.since = now
	}
	return (c.MaxAttempts > 0 && t.tries >= c.MaxAttempts) || (c.MaxAge > 0 && now.Sub(t.since) >= c.MaxAge)
}

// send gives the records of p from index from up to to to the sink until every
// one of them is safe, staged, or set aside. It fails only when the delivery is
// told to stop.
func (d *delivery) send(p *parcel, from, to int, t trial) error {
	pauses := d.pauses()
	crashes := 0
	for attempt := uint32(1); ; attempt++ {
		if !d.ready() {
			return errStopped
		}
		session := d.session()
		result, failure := d.call(p.batch(d.sink.Name(), from, to, attempt), t.alone)
		switch result.Outcome {
		case sdk.Committed:
			d.delivered(to - from)
			return nil
		case sdk.Staged:
			p.stagedIn(session)
			return nil
		case sdk.Partial:
			return d.partial(p, from, to, result.Failures, t)
		case sdk.OutcomeUnspecified, sdk.Rejected:
		}
		if failure.Class == sdk.ClassInternal {
			t.internal--
		}
		if hopeless(failure) || t.internal <= 0 {
			t.internal = max(t.internal, 1)
			return d.refused(p, from, to, t, failure)
		}
		if failure.Code == codeDied {
			if t.alone {
				crashes++
			}
			t.alone = true
			if d.fatalTo(to-from, crashes) {
				return d.crashed(p, from, to, t, failure)
			}
		}
		if answered(failure) && t.again(d.own.Retry, time.Now()) {
			if d.own.Retry.OnExhausted != exhaustedHold {
				return d.buryAll(p, from, to, failure)
			}
			d.hold(failure)
			t.tries = 0
			continue
		}
		if !sleep(d.running, d.trouble(failure, pauses)) {
			return errStopped
		}
	}
}

// answered reports whether it was the sink that failed: not its process, nor
// its config.
func answered(e *sdk.Error) bool {
	return e.Class != sdk.ClassConfig && e.Code != codeDied && e.Code != codeDown
}

// buryAll sets records aside.
func (d *delivery) buryAll(p *parcel, from, to int, cause *sdk.Error) error {
	for i := from; i < to; i++ {
		if err := d.bury(&p.events[i], p.firstSeq+uint64(i), cause); err != nil {
			return err
		}
	}
	return nil
}

// pauses are those between the attempts of one batch.
type pauses struct {
	short backoff
	long  backoff // while the sink says that its config is wrong
}

func (d *delivery) pauses() *pauses {
	c, own := d.cfg.Deliver, d.own.Retry
	if own.Initial > 0 {
		c.RetryMin = own.Initial
	}
	if own.Max > 0 {
		c.RetryMax = own.Max
	}
	return &pauses{
		short: backoff{least: c.RetryMin, most: max(c.RetryMin, c.RetryMax)},
		long:  backoff{least: min(10*c.RetryMin, c.ConfigRetry), most: c.ConfigRetry},
	}
}

// trouble takes note of a failure and says when to try again.
func (d *delivery) trouble(failure *sdk.Error, p *pauses) (wait time.Duration) {
	state := "retrying"
	switch failure.Class {
	case sdk.ClassThrottled:
		state, wait = "throttled", failure.RetryAfter
		if wait <= 0 {
			wait = p.short.pause()
		}
		wait = min(max(wait, minThrottle), maxThrottle)
	case sdk.ClassConfig:
		state, wait = "misconfigured", p.long.pause()
	default:
		wait = p.short.pause()
	}
	d.tally.failed(state, failure)
	d.logger.Warn("a sink did not take a batch; it will be sent again",
		zap.Stringer("class", failure.Class), zap.Duration("in", wait), zap.Error(failure))
	return wait
}

// ready waits for the sink; false when the delivery was told to stop.
func (d *delivery) ready() bool {
	if !d.gate.wait(d.running) {
		return false
	}
	d.tally.is("waiting")
	if d.sink.Ready(d.running) != nil || d.running.Err() != nil {
		return false
	}
	d.tally.is("delivering")
	return true
}

// call calls the sink: beside others or, when the batch may bring the plugin
// down, while nothing else is sent.
func (d *delivery) call(b *sdk.Batch, alone bool) (sdk.WriteResult, *sdk.Error) {
	if alone {
		d.alone.Lock()
		defer d.alone.Unlock()
	} else {
		d.alone.RLock()
		defer d.alone.RUnlock()
	}
	began := time.Now()
	result, failure := d.write(b)
	d.size.learn(began, failure)
	if failure == nil {
		d.fatal.Store(0)
	}
	return result, failure
}

// write calls the sink. What comes back is either an outcome to believe, or
// none and an error with a class.
func (d *delivery) write(b *sdk.Batch) (sdk.WriteResult, *sdk.Error) {
	ctx, cancel := context.WithTimeout(d.living, d.cfg.Deliver.Timeout)
	defer cancel()
	start := time.Now()
	result, err := d.sink.Write(ctx, b)
	failure := verdict(b, &result, err)
	outcome := result.Outcome.String()
	if failure != nil {
		outcome = failure.Class.String()
	}
	name := d.sink.Name()
	d.metrics.deliverTime.WithLabelValues(name).Observe(time.Since(start).Seconds())
	d.metrics.deliverSize.WithLabelValues(name).Observe(float64(len(b.Records)))
	d.metrics.deliverCalls.WithLabelValues(name, outcome).Inc()
	return result, failure
}

// verdict decides what an answer means. An answer that does not hang together
// is no success: the outcome is unknown.
func verdict(b *sdk.Batch, r *sdk.WriteResult, err error) *sdk.Error {
	breach := func(what string) *sdk.Error {
		*r = sdk.WriteResult{}
		return sdk.Errorf(sdk.ClassTransient, "contract_breach", "%s", what).From(sdk.SourcePlugin)
	}
	switch {
	case err != nil:
		*r = sdk.WriteResult{}
		return classified(sdk.AsError(err))
	case r.Outcome == sdk.Committed || r.Outcome == sdk.Staged:
		return nil
	case r.Outcome == sdk.Rejected && r.Err == nil:
		return breach("rejected without a reason")
	case r.Outcome == sdk.Rejected:
		return classified(r.Err)
	case r.Outcome != sdk.Partial:
		return breach("an answer without an outcome")
	}
	seen := make([]bool, len(b.Records))
	for _, f := range r.Failures {
		if f.Index < 0 || f.Index >= len(seen) || seen[f.Index] {
			return breach("failures that are not of this batch")
		}
		seen[f.Index] = true
	}
	if len(r.Failures) == 0 {
		return breach("partial without failures")
	}
	return nil
}

// hopeless reports whether trying again cannot help.
func hopeless(e *sdk.Error) bool {
	return e.Class == sdk.ClassPermanent || e.Class == sdk.ClassUnsupported
}

// classified gives an error without a class the weakest one.
func classified(e *sdk.Error) *sdk.Error {
	if e.Class != sdk.ClassUnspecified {
		return e
	}
	c := *e
	c.Class = sdk.ClassTransient
	return &c
}

// refused deals with records the sink will never take: several are halved to
// find those to blame, a single one is set aside.
func (d *delivery) refused(p *parcel, from, to int, t trial, cause *sdk.Error) error {
	if to-from == 1 {
		return d.bury(&p.events[from], p.firstSeq+uint64(from), cause)
	}
	half := from + (to-from)/2
	for _, part := range [2][2]int{{from, half}, {half, to}} {
		tries := t
		if part[1]-part[0] == 1 {
			tries.internal = d.cfg.Deliver.MaxInternal
		}
		if err := d.send(p, part[0], part[1], tries); err != nil {
			return err
		}
	}
	return nil
}

// partial settles the records an answer lists: those refused for good are set
// aside, the others sent again, in order.
func (d *delivery) partial(p *parcel, from, to int, failures []sdk.Failure, t trial) error {
	d.delivered(to - from - len(failures))
	slices.SortFunc(failures, func(a, b sdk.Failure) int { return a.Index - b.Index })
	var again []int
	var cause *sdk.Error
	for _, f := range failures {
		e := f.Err
		if e == nil {
			e = sdk.Errorf(sdk.ClassTransient, "unspecified", "failed without a reason")
		}
		if hopeless(e) {
			if err := d.bury(&p.events[from+f.Index], p.firstSeq+uint64(from+f.Index), e); err != nil {
				return err
			}
			continue
		}
		if cause == nil {
			cause = e
		}
		again = append(again, from+f.Index)
	}
	if cause == nil {
		return nil
	}
	if t.again(d.own.Retry, time.Now()) {
		if d.own.Retry.OnExhausted != exhaustedHold {
			for _, i := range again {
				if err := d.buryAll(p, i, i+1, cause); err != nil {
					return err
				}
			}
			return nil
		}
		d.hold(cause)
		t.tries = 0
	} else if !sleep(d.running, d.trouble(cause, d.pauses())) {
		return errStopped
	}
	return d.resend(p, again, t)
}

// resend sends records again, neighbours together: the numbers of a batch have
// no gaps.
func (d *delivery) resend(p *parcel, indexes []int, t trial) error {
	for start := 0; start < len(indexes); {
		end := start + 1
		for end < len(indexes) && indexes[end] == indexes[end-1]+1 {
			end++
		}
		if err := d.send(p, indexes[start], indexes[end-1]+1, t); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// delivered counts records that are safe.
func (d *delivery) delivered(n int) {
	d.tally.count(n, 0)
	d.metrics.delivered.WithLabelValues(d.sink.Name()).Add(float64(n))
}

// bury keeps an event as a dead letter, waiting for the database if need be. It
// fails only when the delivery is told to stop.
func (d *delivery) bury(ev *sdk.Event, seq uint64, cause *sdk.Error) error {
	l := letter(d.live.reader, ev, cause, time.Now())
	l.Seq = seq
	pause := backoff{least: d.cfg.Deliver.RetryMin, most: d.cfg.Deliver.RetryMax}
	for {
		ctx, cancel := context.WithTimeout(d.living, d.cfg.Deliver.Timeout)
		err := d.store.addLetter(ctx, l)
		cancel()
		if err == nil {
			break
		}
		d.tally.failed("waiting_for_database", errors.Join(cause, err))
		d.logger.Warn("a dead letter cannot be kept; waiting for the database", zap.Error(err))
		if !sleep(d.running, pause.pause()) {
			return errStopped
		}
	}
	d.tally.count(0, 1)
	d.tally.failed("delivering", cause)
	d.metrics.dead.WithLabelValues(d.live.reader).Inc()
	d.logger.Error("a sink refused an event for good; it was set aside",
		zap.String("event_uuid", ev.UUID), zap.Int64("project_id", ev.ProjectID), zap.Error(cause))
	return nil
}
