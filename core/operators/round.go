package operators

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Round answers for plugin operators in two rounds: what it does not know in the
// first it notes; Ask asks the plugins, and after that it answers. It is for
// those who look at many values without anybody waiting for it by the
// millisecond. It belongs to one goroutine.
type Round struct {
	operators *Operators
	now       time.Time
	noted     []match.Pair
	at        map[question]int
	results   []match.Result // of the first so many of noted
}

var _ match.External = (*Round)(nil)

// NewRound returns a round at the time of now.
func (o *Operators) NewRound() *Round {
	return &Round{operators: o, now: time.Now(), at: map[question]int{}}
}

// Match answers what is known, or notes the question.
func (r *Round) Match(p match.Program, v *match.Value) match.Result {
	if i, ok := r.at[questionOf(p, v)]; ok {
		if i < len(r.results) {
			return r.results[i]
		}
		return match.Unknown
	}
	if res, ok := r.operators.Known(p, v, r.now); ok {
		return res
	}
	own := v.Clone()
	r.at[questionOf(p, &own)] = len(r.noted)
	r.noted = append(r.noted, match.Pair{Program: p, Value: own})
	return match.Unknown
}

// askAtOnce is how many questions go into one call.
const askAtOnce = 1000

// Ask asks the plugins everything that was noted since the last Ask, within the
// deadline of ctx and of the config for each thousand questions, and reports
// whether there was anything.
func (r *Round) Ask(ctx context.Context) bool {
	from := len(r.results)
	if from == len(r.noted) {
		return false
	}
	r.results = append(r.results, make([]match.Result, len(r.noted)-from)...)
	for ; from < len(r.noted); from += askAtOnce {
		to := min(from+askAtOnce, len(r.noted))
		within, cancel := context.WithTimeout(ctx, r.operators.cfg.ActionTimeout)
		r.operators.ask(within, background, r.now, r.noted[from:to], r.results[from:to])
		cancel()
	}
	return true
}
