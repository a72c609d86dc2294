package eval

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// PluginRound answers filters with operators of plugins in two rounds: the first
// collects the pairs without a known result, the second has their results.
type PluginRound interface {
	match.External
	// Ask passes the collected pairs to the plugins, within the deadline of
	// ctx, and reports whether there were any.
	Ask(ctx context.Context) bool
}

// KnownResults keeps earlier results of plugins.
type KnownResults interface {
	// Known returns the result that plugins gave for a pair before, if it is
	// still valid at the given time. It does not block.
	Known(p match.Program, v *match.Value, now time.Time) (match.Result, bool)
}

// pluginAnswers collects the pairs that a request passes to plugins, and their
// results. The result of a pair is Unknown in the round that collects it.
type pluginAnswers struct {
	known   KnownResults // nil disables plugins
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

// Match returns the known result of a pair, or adds the pair to the open ones.
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

// UsePlugins enables operators of plugins: known results are used, the other
// pairs are collected for OpenPairs.
func (e *Evaluation) UsePlugins(known KnownResults) {
	e.plugins.known, e.plugins.now = known, e.env.Now
}

// HasOpenPairs reports whether pairs wait for results of plugins.
func (e *Evaluation) HasOpenPairs() bool { return e.plugins.open() }

// OpenPairs returns the pairs without a result, and a slice that the caller fills
// with their results. The pairs are answered from now on; a result that the
// caller does not set is Unknown.
func (e *Evaluation) OpenPairs() ([]match.Pair, []match.Result) {
	a := &e.plugins
	from := len(a.results)
	for range a.pairs[from:] {
		a.results = append(a.results, match.Unknown)
	}
	return a.pairs[from:], a.results[from:]
}
