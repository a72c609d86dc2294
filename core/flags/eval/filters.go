package eval

import "encoding/json"

// Filters is the decoded form of a flag's filters: for whom the flag is on,
// which variant they get and what comes with it. It is what the evaluator
// reads; the JSON text stays the truth, and names that are not listed here
// live on in it.
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

// ConditionSet is one alternative: all its properties hold and the bucket is
// within the rollout.
type ConditionSet struct {
	Properties  []Property
	Rollout     *float64 // per cent; nil lets everyone in
	Variant     string   // override for those who match; "" for none
	Description string
	// Aggregation says what is bucketed and matched when AggregationSet is
	// true: a group type index, or nil for persons. Otherwise the flag's own
	// aggregation holds.
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

// Holdout keeps a share of the people out of the flag, the same people for
// every flag of the holdout.
type Holdout struct {
	ID        string // as text: it is part of the variant's name
	Exclusion float64
}

// FiltersError reports filters that cannot be decoded.
type FiltersError struct {
	Code   string // of the API: not_a_dict or invalid_input
	Detail string // starts with the path of the offending value, if it has one
	Cause  error  // of the JSON parser, or nil
}

func (e *FiltersError) Error() string {
	if e.Cause != nil {
		return e.Code + " (filters): " + e.Detail + ": " + e.Cause.Error()
	}
	return e.Code + " (filters): " + e.Detail
}

// ParseFilters decodes the JSON text of a flag's filters. Filters without
// "groups" are read as one condition set made of the top-level properties.
// The error is a *FiltersError. Unknown names and unknown operators are no
// error.
func ParseFilters(raw []byte) (Filters, error) {
	var f Filters
	root, err := readObject(raw)
	if err != nil {
		return f, &FiltersError{Code: "not_a_dict", Detail: "Expected a dictionary of items.", Cause: err}
	}
	r := &filterReader{}
	r.filters(&f, root)
	if r.err != nil {
		return Filters{}, r.err
	}
	return f, nil
}
