// Package match answers one question: does this value pass this filter?
//
// A filter is compiled once, when it is stored or loaded: its numbers are
// parsed, its texts lower-cased, its pattern and dates read. Matching then
// only compares, allocates nothing for plain values and never fails: what
// cannot be compared does not pass. Values are views of JSON text, so nobody
// has to build maps to ask.
//
// The rules are those that client libraries apply when they evaluate by
// themselves, so that their answer and ours are the same one. Each operator
// is one row of the table in operators.go and one short function.
//
// Everything here is safe for parallel use except a Value, which remembers
// what was worked out about it and belongs to one goroutine.
package match

import "time"

// Result is the answer of a match. The zero value means that nobody knows.
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

// Not turns True and False around; what is unknown stays so.
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

// String is the word for the result.
func (r Result) String() string { return [...]string{"unknown", "false", "true"}[r%3] }

// Env is what a match may depend on besides the filter and the value.
type Env struct {
	Now      time.Time // what relative dates count from
	External External  // answers for operators of plugins; nil knows none
}
