// Package rules checks the filters of flags and cohorts before they are stored.
//
// A check is pure: the caller looks up what the filters refer to (References).
// It returns the text to store, which is the text of the caller with few
// changes, or the first broken rule as an Invalid fault that names the path of
// the offending value. Operators are checked by compiling them with match, so
// that a stored filter is one that the evaluator understands.
//
// Stored filters may break rules that are newer than they are, or refer to
// things that are gone since; the evaluator (eval) copes with that.
package rules
