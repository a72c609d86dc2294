package operators

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
)

// purpose is what a request is for. Each purpose has its own limiter to a plugin, so
// that a long request of an action does not delay a decide.
type purpose uint8

const (
	forDecide purpose = iota
	forAction
)

func (p purpose) String() string { return [...]string{"decide", "action"}[p] }

// The breaker opens when half of at least breakerCalls calls in breakerWindow have
// failed. After minOpenTime one call is tried; when it fails, too, after twice the
// time, up to maxOpenTime.
const (
	breakerWindow = 10 * time.Second
	breakerCalls  = 20
	minOpenTime   = time.Second
	maxOpenTime   = 30 * time.Second
)

// limiter limits the calls of one plugin for one purpose: their number in flight, and
// none for a while when they fail.
type limiter struct {
	slots     chan struct{}
	breaker   *gobreaker.TwoStepCircuitBreaker[struct{}]
	openUntil atomic.Int64 // no calls until then, unix nanoseconds
	openTime  time.Duration
}

func (o *Operators) newPlugin(name string) *plugin {
	return &plugin{name: name, decide: o.newLimiter(name, forDecide), action: o.newLimiter(name, forAction)}
}

func (o *Operators) newLimiter(name string, in purpose) *limiter {
	l := &limiter{slots: make(chan struct{}, o.cfg.MaxInFlight)}
	log := o.log.With(zap.String("plugin", name), zap.Stringer("for", in))
	l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: breakerWindow, BucketPeriod: time.Second, Timeout: minOpenTime, MaxRequests: 1,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= breakerCalls && 2*c.TotalFailures >= c.Requests
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		// The breaker calls it under its lock, which guards openTime, too.
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				if l.openTime = min(2*l.openTime, maxOpenTime); from == gobreaker.StateClosed || l.openTime == 0 {
					l.openTime = minOpenTime
				}
				l.openUntil.Store(time.Now().Add(l.openTime).UnixNano())
				log.Warn("plugin operator breaker opened", zap.Duration("retry_after", l.openTime))
			case gobreaker.StateClosed:
				l.openTime = 0
				log.Info("plugin operator breaker closed")
			default:
			}
			o.meter.setBreaker(name, in, to == gobreaker.StateOpen)
		},
	})
	return l
}

var (
	errLate       = errors.New("the answer took the whole deadline")
	errCallFailed = errors.New("the plugin could not be asked")
)

// call calls the plugin unless the limit is reached or the breaker is open. Without an
// answer, reason is the label of the cause.
func (l *limiter) call(ctx context.Context, m Matcher, b *wire.MatchBatch) (answer *wire.MatchAnswer, reason string) {
	if time.Now().UnixNano() < l.openUntil.Load() {
		return nil, "open"
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return nil, "busy"
	}
	done, err := l.breaker.Allow()
	if err != nil {
		return nil, "open"
	}
	answer, err = m.MatchBatch(ctx, b)
	switch {
	case err == nil && ctx.Err() != nil && hasUnknown(answer.Verdicts):
		done(errLate)
		return answer, ""
	case err == nil:
		done(nil)
		return answer, ""
	case errors.Is(ctx.Err(), context.Canceled): // by the caller
		done(context.Canceled)
		return nil, "cancelled"
	case ctx.Err() != nil || isDeadlineExceeded(err):
		done(errCallFailed)
		return nil, "timeout"
	case !m.Available():
		done(errCallFailed)
		return nil, "unavailable"
	}
	done(errCallFailed)
	return nil, "error"
}

// isDeadlineExceeded reports whether the plugin noticed the deadline before the host.
func isDeadlineExceeded(err error) bool {
	e := sdk.AsError(err)
	return e != nil && e.Code == "deadline_exceeded"
}

func hasUnknown(verdicts []sdk.Verdict) bool {
	for _, v := range verdicts {
		if v == sdk.Unknown {
			return true
		}
	}
	return false
}
