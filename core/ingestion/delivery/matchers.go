package delivery

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/ingestion/delivery/status"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/retry"
	"github.com/guidonhq/guidon/sdk"
)

// UseMatchers makes property filters know the operators of plugins. It must be called
// before Start.
func (d *Service) UseMatchers(m filter.Matchers) { d.matchers = m }

// SkipReason returns why the filters of a sink leave an event out, as they are now: event,
// project, property or sample. It returns "" if they do not, or if that is not known.
func (d *Service) SkipReason(ctx context.Context, sink string, ev *sdk.Event) string {
	for _, s := range d.sinks.Sinks() {
		if s.Name() != sink {
			continue
		}
		if own, err := sectionOf(s); err == nil {
			reason, _ := filter.Reason(ctx, own, d.matchers, ev) // without an answer it is not known
			return reason
		}
	}
	return ""
}

// maxMatcherPause is the longest pause before matchers are asked again.
const maxMatcherPause = 5 * time.Second

// evaluate returns the filter of the sink and what it needs to filter the events. It
// waits for the plugins of its operators; ok is false when ctx ends first.
func (c *cursors) evaluate(ctx context.Context, events []sdk.Event) (f *filter.Filter, env *match.Env, ok bool) {
	if !c.filter.External() {
		return c.filter, &match.Env{Now: time.Now()}, true
	}
	backoff := retry.Backoff{Min: c.cfg.RetryMin, Max: max(c.cfg.RetryMin, min(c.cfg.RetryMax, maxMatcherPause))}
	for {
		f, env, err := filter.Evaluate(ctx, c.own, c.matchers, events)
		switch {
		case err == nil:
			c.stats.SetFiltering("", nil)
			return f, env, true
		case ctx.Err() != nil:
			return nil, nil, false
		case errors.Is(err, filter.ErrInvalid):
			if c.stats.SetFiltering(status.Misconfigured, err) {
				c.logger.Error("sink delivery misconfigured: no events are sent", zap.Error(err))
			}
		default:
			if c.stats.SetFiltering(status.WaitingForMatcher, err) {
				c.logger.Warn("delivery filters not evaluated; waiting for the matcher", zap.Error(err))
			}
		}
		if !backoff.Sleep(ctx) {
			return nil, nil, false
		}
	}
}
