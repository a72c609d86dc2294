// Package answers collects the pairs of filters and values that a request passes to
// operators of plugins, and their results.
package answers

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Known keeps earlier results of plugins.
type Known interface {
	// Known returns the result that plugins gave for a pair before, if it is
	// still valid at the given time. It does not block.
	Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool)
}

// Round answers filters with operators of plugins in two rounds: the first collects
// the pairs without a known result, the second has their results.
type Round interface {
	match.External
	// Ask passes the collected pairs to the plugins, within the deadline of
	// ctx, and reports whether there were any.
	Ask(ctx context.Context) bool
}

// Answers are the pairs of one request. The result of a pair is Unknown in the round
// that collects it. The zero value knows no plugins.
type Answers struct {
	known   Known // nil disables plugins
	now     time.Time
	pairs   []match.Pair
	results []match.Result // of the first len(results) pairs
}

var _ match.External = (*Answers)(nil)

// Reset removes the pairs and disables plugins.
func (a *Answers) Reset() {
	clear(a.pairs)
	a.known, a.pairs, a.results = nil, a.pairs[:0], a.results[:0]
}

// Use enables plugins: known results are used, the other pairs are collected.
func (a *Answers) Use(known Known, now time.Time) { a.known, a.now = known, now }

// Open reports whether some pair has no result yet.
func (a *Answers) Open() bool { return a.known != nil && len(a.pairs) > len(a.results) }

// Match returns the known result of a pair, or adds the pair to the open ones.
func (a *Answers) Match(p match.Program, v *match.Value) match.Result {
	if a.known == nil {
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
	if res, ok := a.known.Known(p, v, a.now); ok {
		return res
	}
	a.pairs = append(a.pairs, match.Pair{Program: p, Value: *v})
	return match.Unknown
}

// OpenPairs returns the pairs without a result, and a slice that the caller fills
// with their results. The pairs are answered from now on; a result that the
// caller does not set is Unknown.
func (a *Answers) OpenPairs() ([]match.Pair, []match.Result) {
	from := len(a.results)
	for range a.pairs[from:] {
		a.results = append(a.results, match.Unknown)
	}
	return a.pairs[from:], a.results[from:]
}
