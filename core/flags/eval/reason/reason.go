// Package reason has the reasons of the values of flags, and the causes of flags
// without a value.
package reason

import "strconv"

// Reason explains the value of a flag.
type Reason uint8

// The reasons, ordered by precedence: the highest one is reported if several
// condition sets did not match.
const (
	Disabled Reason = iota
	NoGroupType
	NoConditionMatch
	OutOfRollout
	ConditionMatch
	Holdout
	Enrolment
)

var reasonCodes = [...]string{
	Disabled:         "flag_disabled",
	NoGroupType:      "no_group_type",
	NoConditionMatch: "no_condition_match",
	OutOfRollout:     "out_of_rollout_bound",
	ConditionMatch:   "condition_match",
	Holdout:          "holdout_condition_value",
	Enrolment:        "super_condition_value",
}

var reasonTexts = [...]string{
	Disabled:         "Feature flag is disabled",
	NoGroupType:      "No group type",
	NoConditionMatch: "No matching condition set",
	OutOfRollout:     "Out of rollout bound",
	ConditionMatch:   "Matched condition set ",
	Holdout:          "Holdout condition value",
	Enrolment:        "Super condition value",
}

// Code returns the reason in answers to clients.
func (r Reason) Code() string { return reasonCodes[r] }

// Describe returns the reason as a sentence. condition is the index of the
// condition set that decided.
func (r Reason) Describe(condition int) string {
	if r == ConditionMatch {
		return reasonTexts[r] + strconv.Itoa(condition+1)
	}
	return reasonTexts[r]
}

// Cause explains why a flag has no value.
type Cause uint8

// The causes.
const (
	None        Cause = iota
	Definition        // the stored filters cannot be decoded
	Operator          // an unknown operator, or a plugin without an answer
	Cohort            // a cohort is missing or cannot be evaluated
	Dependency        // a flag it depends on is missing or could not be computed
	Cycle             // flags depend on each other in a circle
	Unavailable       // stored data could not be read
	TooLarge          // the regular expressions of the flag or a cohort are over a limit
	Text              // a regular expression, and a text over match.MaxPatternText
	Budget            // comparing texts needs more than the budget of the request
)

// Causes is the number of causes, None included.
const Causes = int(Budget) + 1

var causeCodes = [Causes]string{
	None:        "",
	Definition:  "invalid_definition",
	Operator:    "operator_unavailable",
	Cohort:      "cohort_unavailable",
	Dependency:  "missing_dependency",
	Cycle:       "dependency_cycle",
	Unavailable: "stored_data_unavailable",
	TooLarge:    "regex_too_large",
	Text:        "text_too_long",
	Budget:      "evaluation_budget_spent",
}

// causeTexts are descriptions for clients.
var causeTexts = [Causes]string{
	Definition:  "The definition of the flag cannot be read",
	Operator:    "An operator of the flag is not available",
	Cohort:      "A cohort of the flag cannot be evaluated",
	Dependency:  "A flag that this flag depends on cannot be evaluated",
	Cycle:       "Flags depend on each other in a circle",
	Unavailable: "Stored data cannot be read",
	TooLarge:    "The regular expressions of the flag are too large",
	Text:        "A property is too long for a regular expression",
	Budget:      "The request needs too much work",
}

// Code returns the stable name of the cause.
func (c Cause) Code() string { return causeCodes[c] }

// Text returns a sentence for clients. It contains nothing that JSON escapes. That of
// ConditionMatch ends before the number of the condition set.
func (r Reason) Text() string { return reasonTexts[r] }

// Text returns a sentence for clients. It contains nothing that JSON escapes.
func (c Cause) Text() string { return causeTexts[c] }
