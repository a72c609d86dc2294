package flags

import (
	"context"

	"github.com/guidonhq/guidon/core/match"
)

// Pair is one question to a plugin: does the value pass the program?
type Pair struct {
	Program match.Program
	Value   match.Value
}

// Matchers answers filters whose operator is a plugin's, all those of a
// request in one call.
type Matchers interface {
	// MatchPairs writes one result a pair into results, which comes filled
	// with Unknown. What is still unknown when the deadline of ctx is near
	// stays so: it must return in time, and keep nothing of the pairs.
	MatchPairs(ctx context.Context, pairs []Pair, results []match.Result)
}

// answers collects what a request has to ask plugins, and what they said. In
// the pass that collects every question is unknown; in the next one each has
// its result.
type answers struct {
	able    bool // somebody can be asked
	pairs   []Pair
	results []match.Result // of the first so many pairs
}

var _ match.External = (*answers)(nil)

func (a *answers) reset() {
	clear(a.pairs)
	a.able, a.pairs, a.results = false, a.pairs[:0], a.results[:0]
}

// open tells whether some question has not been asked yet.
func (a *answers) open() bool { return a.able && len(a.pairs) > len(a.results) }

// Match looks the pair up, or notes it to be asked.
func (a *answers) Match(p match.Program, v *match.Value) match.Result {
	if !a.able {
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
	a.pairs = append(a.pairs, Pair{Program: p, Value: *v})
	return match.Unknown
}

// ask puts all open questions to m.
func (a *answers) ask(ctx context.Context, m Matchers) {
	from := len(a.results)
	for range a.pairs[from:] {
		a.results = append(a.results, match.Unknown)
	}
	m.MatchPairs(ctx, a.pairs[from:], a.results[from:])
}
