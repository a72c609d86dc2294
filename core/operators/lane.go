package operators

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// purpose is what questions are asked for. Each has its own lane to a plugin, so
// that a long question of an action does not stand in the way of a decide.
type purpose uint8

const (
	deciding purpose = iota
	background
)

func (p purpose) String() string { return [...]string{"decide", "action"}[p] }

// When a lane is closed to callers: of at least so many calls in so long, half
// have failed. It is opened to one call after firstHold; when that fails too,
// after twice as long, and so on.
const (
	breakWindow = 10 * time.Second
	breakCalls  = 20
	firstHold   = time.Second
	lastHold    = 30 * time.Second
)

// lane is the way to a plugin: only so many calls at once, and none for a while
// when they fail.
type lane struct {
	slots   chan struct{}
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	held    atomic.Int64 // until when nobody is let in, unix nanoseconds
	hold    time.Duration
}

func (o *Operators) newPlugin(name string) *plugin {
	return &plugin{name: name, deciding: o.newLane(name, deciding), background: o.newLane(name, background)}
}

func (o *Operators) lane(p *plugin, in purpose) *lane {
	if in == deciding {
		return p.deciding
	}
	return p.background
}

func (o *Operators) newLane(name string, in purpose) *lane {
	l := &lane{slots: make(chan struct{}, o.cfg.MaxInFlight)}
	log := o.log.With(zap.String("plugin", name), zap.Stringer("for", in))
	l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: breakWindow, BucketPeriod: time.Second, Timeout: firstHold, MaxRequests: 1,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.Requests >= breakCalls && 2*c.TotalFailures >= c.Requests },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) },
		// It is called under the breaker's lock, so hold needs no other.
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				if l.hold = min(2*l.hold, lastHold); from == gobreaker.StateClosed || l.hold == 0 {
					l.hold = firstHold
				}
				l.held.Store(time.Now().Add(l.hold).UnixNano())
				log.Warn("a plugin is not asked for a while: it does not answer", zap.Duration("while", l.hold))
			case gobreaker.StateClosed:
				l.hold = 0
				log.Info("a plugin is asked again")
			default:
			}
			o.meter.open(name, in, to == gobreaker.StateOpen)
		},
	})
	return l
}

var (
	errLate    = errors.New("the answer took the whole deadline")
	errUnasked = errors.New("the plugin could not be asked")
)

// call asks the plugin unless there is no point in it. A reason says why there
// is no answer.
func (l *lane) call(ctx context.Context, m Matcher, b *Batch) (said Answer, reason string) {
	if time.Now().UnixNano() < l.held.Load() {
		return said, "open"
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		return said, "busy"
	}
	done, err := l.breaker.Allow()
	if err != nil {
		return said, "open"
	}
	said, err = m.Match(ctx, b)
	switch {
	case err == nil && ctx.Err() != nil && partial(said.Verdicts):
		done(errLate)
		return said, ""
	case err == nil:
		done(nil)
		return said, ""
	case errors.Is(ctx.Err(), context.Canceled): // the caller went away
		done(context.Canceled)
		return said, "cancelled"
	case ctx.Err() != nil || late(err):
		done(errUnasked)
		return said, "timeout"
	case !m.Available():
		done(errUnasked)
		return said, "unavailable"
	}
	done(errUnasked)
	return said, "error"
}

// late reports whether a plugin found out before us that the time is over.
func late(err error) bool {
	e := sdk.AsError(err)
	return e != nil && e.Code == "deadline_exceeded"
}

func partial(verdicts []sdk.Verdict) bool {
	for _, v := range verdicts {
		if v == sdk.Unknown {
			return true
		}
	}
	return false
}
