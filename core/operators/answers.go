package operators

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// answerTimes are the times of the watch for changed answers: a state counts after it
// has lasted for settle, and is reported at most once in pause. A plugin that restarts
// quickly is not reported, and one that flaps does not make all clients ask again
// each second.
type answerTimes struct{ interval, settle, pause time.Duration }

var defaultAnswerTimes = answerTimes{interval: 250 * time.Millisecond, settle: time.Second, pause: 10 * time.Second}

// OnAnswers registers a function that is called when operators may have other results
// than before: operators were added, removed or changed, a plugin became available
// or unavailable, or its data has another version. After an error it is called
// again. It must be called before Start.
func (o *Operators) OnAnswers(fn func(ctx context.Context) error) {
	o.onAnswers = append(o.onAnswers, fn)
}

// answerState describes what the results of operators depend on besides the events.
func (o *Operators) answerState() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var parts []string
	for name, p := range o.plugins {
		m := p.current()
		parts = append(parts, fmt.Sprintf("%s %d %t %s", name, p.epoch.Load(), m.Available(), m.DataVersion()))
	}
	slices.Sort(parts)
	return strings.Join(append(parts, fmt.Sprint(o.uncompiled.Load())), "\n")
}

// watchAnswers calls the functions of OnAnswers for changes since reported until ctx
// ends.
func (o *Operators) watchAnswers(ctx context.Context, reported string) {
	state, since, last := reported, time.Now(), time.Time{}
	for retry.SleepAligned(ctx, o.answerTimes.interval) {
		now := time.Now()
		if next := o.answerState(); next != state {
			state, since = next, now
		}
		if state == reported || now.Sub(since) < o.answerTimes.settle || now.Sub(last) < o.answerTimes.pause {
			continue
		}
		last = now
		if o.reportAnswers(ctx) {
			reported = state
		}
	}
}

func (o *Operators) reportAnswers(ctx context.Context) bool {
	for _, fn := range o.onAnswers {
		if err := fn(ctx); err != nil {
			if ctx.Err() == nil {
				o.log.Warn("change of plugin operators not reported, it is reported later", zap.Error(err))
			}
			return false
		}
	}
	return true
}
