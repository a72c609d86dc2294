// Package match decides whether a value passes a filter.
//
// A filter is compiled once, when it is stored or loaded: its numbers are
// parsed, its texts lower-cased, its pattern and dates read. Matching then
// only compares, allocates nothing for plain values and never fails: values
// that cannot be compared do not pass. Values are views of JSON text, so
// callers build no maps.
//
// The rules are those of the client libraries that evaluate locally, so both
// give the same answer. Each operator is one row of the table in operators.go
// and one short function.
//
// Everything here is safe for parallel use except a Value and a Chain: they
// cache what was parsed and belong to one goroutine.
package match

import "time"

// Result is the answer of a match. The zero value is Unknown.
type Result uint8

// The results. Their numbers are those of the matcher plugins' protocol.
const (
	Unknown Result = iota
	False
	True
)

// Of is True for true and False for false.
func Of(b bool) Result {
	if b {
		return True
	}
	return False
}

// Not swaps True and False; Unknown stays Unknown.
func (r Result) Not() Result {
	switch r {
	case True:
		return False
	case False:
		return True
	default:
		return Unknown
	}
}

// String returns the name of the result in lower case.
func (r Result) String() string { return [...]string{"unknown", "false", "true"}[r%3] }

// Env holds the inputs of a match besides the filter and the value.
type Env struct {
	Now      time.Time // the reference of relative dates
	External External  // evaluates operators of plugins; nil makes them Unknown
	Budget   *Budget   // bounds the work on texts; nil does not
}
