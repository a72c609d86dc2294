package operators

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Round evaluates plugin operators in two passes: Match collects the pairs without a
// known result, Ask calls the plugins for them, and then Match returns the results.
// It is for background work on many values. It is not safe for concurrent use.
type Round struct {
	operators *Operators
	now       time.Time
	pending   []match.Pair
	at        map[cacheKey]int
	results   []match.Result // of the first len(results) of pending

	unanswered string
}

var _ match.External = (*Round)(nil)

// NewRound returns a round with the current time.
func (o *Operators) NewRound() *Round {
	return &Round{operators: o, now: time.Now(), at: map[cacheKey]int{}}
}

// Match returns a known result, or collects the pair and returns Unknown.
func (r *Round) Match(p match.Program, v *match.Value) match.Result {
	if i, ok := r.at[cacheKeyOf(p, v)]; ok {
		if i < len(r.results) {
			return r.results[i]
		}
		return match.Unknown
	}
	if res, ok := r.operators.Known(p, v, r.now); ok {
		return res
	}
	own := v.Clone()
	r.at[cacheKeyOf(p, &own)] = len(r.pending)
	r.pending = append(r.pending, match.Pair{Program: p, Value: own})
	return match.Unknown
}

// maxPairsPerCall is the largest number of pairs in one call.
const maxPairsPerCall = 1000

// Ask calls the plugins for the pairs collected since the last Ask. Each call ends at
// the deadline of ctx or after the configured ActionTimeout. It reports whether there
// were any pairs.
func (r *Round) Ask(ctx context.Context) bool {
	from := len(r.results)
	if from == len(r.pending) {
		return false
	}
	r.results = append(r.results, make([]match.Result, len(r.pending)-from)...)
	for ; from < len(r.pending); from += maxPairsPerCall {
		to := min(from+maxPairsPerCall, len(r.pending))
		callCtx, cancel := context.WithTimeout(ctx, r.operators.cfg.ActionTimeout)
		if why := r.operators.matchPairs(callCtx, forAction, r.now, r.pending[from:to], r.results[from:to]); why != "" {
			r.unanswered = why
		}
		cancel()
	}
	return true
}

// Unanswered returns the plugin and the reason of a call that had no answer, or "". The
// results of its pairs are Unknown, and a later round may have them.
func (r *Round) Unanswered() string { return r.unanswered }
