package eval

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// PluginRound answers for operators of plugins in two rounds: it collects the
// questions that it cannot answer in the first, and answers them in the second.
type PluginRound interface {
	match.External
	// Ask passes the collected questions to the plugins, within the deadline of
	// ctx, and reports whether there were any.
	Ask(ctx context.Context) bool
}

// KnownResults is the memory of earlier plugin results.
type KnownResults interface {
	// Known returns the result that plugins gave for a pair before, if it is
	// still valid at the given time. It does not block.
	Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool)
}

// pluginAnswers collects the pairs that a request passes to plugins, and their
// results. Every pair is unknown in the round that collects it; in the next
// round it has its result.
type pluginAnswers struct {
	known   KnownResults // nil: plugins cannot be asked
	now     time.Time
	pairs   []match.Pair
	results []match.Result // of the first len(results) pairs
}

var _ match.External = (*pluginAnswers)(nil)

func (a *pluginAnswers) reset() {
	clear(a.pairs)
	a.known, a.pairs, a.results = nil, a.pairs[:0], a.results[:0]
}

// open reports whether some pair has no result yet.
func (a *pluginAnswers) open() bool { return a.known != nil && len(a.pairs) > len(a.results) }

// Match looks the pair up, or adds it to the open ones.
func (a *pluginAnswers) Match(p match.Program, v *match.Value) match.Result {
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

// UsePlugins lets plugins answer for their operators: known results are taken
// from memory, the other pairs are collected for OpenPairs.
func (e *Evaluation) UsePlugins(known KnownResults) {
	e.plugins.known, e.plugins.now = known, e.env.Now
}

// HasOpenPairs reports whether pairs wait for results of plugins.
func (e *Evaluation) HasOpenPairs() bool { return e.plugins.open() }

// OpenPairs returns the pairs that have no result yet, and where to write one
// result for each. All of them count as answered from now on; a result that is
// not written is Unknown.
func (e *Evaluation) OpenPairs() ([]match.Pair, []match.Result) {
	a := &e.plugins
	from := len(a.results)
	for range a.pairs[from:] {
		a.results = append(a.results, match.Unknown)
	}
	return a.pairs[from:], a.results[from:]
}
