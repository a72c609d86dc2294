// Package rules checks the filters of flags and cohorts before they are stored.
//
// A check is pure: the caller looks up what the filters refer to (References).
// It returns the text to store, which is the text of the caller with few
// changes, or the first broken rule as an Invalid fault that names the path of
// the offending value. Operators are checked by compiling them with match, so
// that the evaluator can compile every stored filter.
//
// Stored filters may break rules that are newer than they are, or refer to
// objects that no longer exist; the evaluator (eval) handles both.
package rules
