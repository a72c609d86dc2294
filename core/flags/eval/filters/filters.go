// Package filters decodes the stored filters of flags and cohorts into types
// that the evaluator compiles.
//
// The stored JSON text stays the source: names that are not listed here are
// ignored, and remain in the text. Unknown operators and property types decode
// without an error, because the compiler reports them per filter. Of equal names
// in an object the last one counts.
//
// The package does not check rules (see flags/rules) and does not rewrite
// documents (see flags/document).
package filters

import (
	"encoding/json"

	"github.com/valyala/fastjson"
)

// Filters is the decoded form of a flag's filters: the conditions under which
// the flag is on, its variants and its payloads.
type Filters struct {
	Groups      []ConditionSet    // alternatives, tried in order
	Variants    []Variant         // empty for a boolean flag
	Payloads    map[string]string // by variant key, or "true": JSON texts
	Aggregation *int              // group type index; nil buckets by person
	SuperGroups []ConditionSet    // older form of enrolment; only the first counts
	Enrollment  bool              // feature_enrollment
	Holdout     *Holdout
	EarlyExit   bool
}

// ConditionSet is one alternative. It matches if all its properties match and
// the bucket is within the rollout.
type ConditionSet struct {
	Properties  []Property
	Rollout     *float64 // per cent; nil is 100
	Variant     string   // override on a match; "" for none
	Description string
	// Aggregation is the subject that is bucketed and matched if AggregationSet
	// is true: a group type index, or nil for persons. Otherwise the aggregation
	// of the flag applies.
	Aggregation    *int
	AggregationSet bool
}

// Property is one filter of a condition set or of a cohort.
type Property struct {
	Key            string
	Type           string // person, group, cohort or flag; "" is the set's own kind
	Operator       string // "" is exact
	Value          json.RawMessage
	GroupTypeIndex *int
	Negation       bool // cohorts only
}

// Variant is one share of a multivariate flag.
type Variant struct {
	Key     string
	Name    string
	Rollout float64 // per cent
}

// Holdout excludes a share of the people from the flag, the same people for
// every flag of the holdout.
type Holdout struct {
	ID        string // as text: it is part of the variant's name
	Exclusion float64
}

// Error reports filters that cannot be decoded.
type Error struct {
	Code   string // of the API: not_a_dict or invalid_input
	Detail string // starts with the path of the offending value, if it has one
	Cause  error  // of the JSON parser, or nil
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Code + " (filters): " + e.Detail + ": " + e.Cause.Error()
	}
	return e.Code + " (filters): " + e.Detail
}

// Parse decodes the JSON text of a flag's filters. Filters without "groups" are
// read as one condition set made of the top-level properties. The error is an
// *Error.
func Parse(raw []byte) (Filters, error) {
	var f Filters
	root, err := readObject(raw)
	if err != nil {
		return f, &Error{Code: "not_a_dict", Detail: "Expected a dictionary of items.", Cause: err}
	}
	r := &reader{}
	r.filters(&f, root)
	if r.err != nil {
		return Filters{}, r.err
	}
	return f, nil
}

// Text returns the text of a small JSON value: the characters of a string,
// anything else as written, "" for text that is not JSON.
func Text(raw []byte) string {
	v, err := fastjson.ParseBytes(raw)
	if err != nil {
		return ""
	}
	return looseText(v)
}
