package flags

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Matchers answers filters whose operator is a plugin's, all those of a
// request in one call.
type Matchers interface {
	// Known returns what plugins have said about a pair before, if that is
	// still true at the given time. It neither blocks nor asks anybody.
	Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool)
	// MatchPairs writes one result a pair into results, which comes filled
	// with Unknown. What is still unknown when the deadline of ctx is near
	// stays so: it must return in time, and keep nothing of the pairs.
	MatchPairs(ctx context.Context, now time.Time, pairs []match.Pair, results []match.Result)
}

// Round answers for operators of plugins in two rounds: what it does not know in
// the first it notes and asks, and answers in the second.
type Round interface {
	match.External
	// Ask asks the plugins everything that was noted, within the deadline of
	// ctx, and reports whether there was anything.
	Ask(ctx context.Context) bool
}

// answers collects what a request has to ask plugins, and what they said. In
// the pass that collects every question is unknown; in the next one each has
// its result.
type answers struct {
	matchers Matchers // nil: nobody can be asked
	now      time.Time
	until    time.Time // when the request has waited long enough; zero before it was asked
	pairs    []match.Pair
	results  []match.Result // of the first so many pairs
}

var _ match.External = (*answers)(nil)

func (a *answers) reset() {
	clear(a.pairs)
	a.matchers, a.until, a.pairs, a.results = nil, time.Time{}, a.pairs[:0], a.results[:0]
}

// open tells whether some question has not been asked yet.
func (a *answers) open() bool { return a.matchers != nil && len(a.pairs) > len(a.results) }

// Match looks the pair up, or notes it to be asked.
func (a *answers) Match(p match.Program, v *match.Value) match.Result {
	if a.matchers == nil {
		return match.Unknown
	}
	for i := range a.pairs {
		if a.pairs[i].Program == p && a.pairs[i].Value.Same(v) {
			if i < len(a.results) {
				return a.results[i]
			}
			return match.Unknown
		}
	}
	if res, ok := a.matchers.Known(p, v, a.now); ok {
		return res
	}
	a.pairs = append(a.pairs, match.Pair{Program: p, Value: *v})
	return match.Unknown
}

// ask puts all open questions to plugins.
func (a *answers) ask(ctx context.Context) {
	from := len(a.results)
	for range a.pairs[from:] {
		a.results = append(a.results, match.Unknown)
	}
	a.matchers.MatchPairs(ctx, a.now, a.pairs[from:], a.results[from:])
}
