package eval

import (
	"github.com/guidonhq/guidon/core/flags/eval/answers"
	"github.com/guidonhq/guidon/core/match"
)

// PluginRound answers filters with operators of plugins in two rounds.
type PluginRound = answers.Round

// KnownResults keeps earlier results of plugins.
type KnownResults = answers.Known

// UsePlugins enables operators of plugins: known results are used, the other
// pairs are collected for OpenPairs.
func (e *Evaluation) UsePlugins(known KnownResults) { e.plugins.Use(known, e.env.Now) }

// HasOpenPairs reports whether pairs wait for results of plugins.
func (e *Evaluation) HasOpenPairs() bool { return e.plugins.Open() }

// OpenPairs returns the pairs without a result, and a slice that the caller fills
// with their results. The pairs are answered from now on; a result that the
// caller does not set is Unknown.
func (e *Evaluation) OpenPairs() ([]match.Pair, []match.Result) { return e.plugins.OpenPairs() }
