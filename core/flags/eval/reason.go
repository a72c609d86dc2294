package eval

import "strconv"

// Reason explains the value of a flag.
type Reason uint8

// The reasons, ordered by precedence: the highest one is reported if several
// condition sets did not match.
const (
	ReasonDisabled Reason = iota
	ReasonNoGroupType
	ReasonNoConditionMatch
	ReasonOutOfRollout
	ReasonConditionMatch
	ReasonHoldout
	ReasonEnrolment
)

var reasonCodes = [...]string{
	ReasonDisabled:         "flag_disabled",
	ReasonNoGroupType:      "no_group_type",
	ReasonNoConditionMatch: "no_condition_match",
	ReasonOutOfRollout:     "out_of_rollout_bound",
	ReasonConditionMatch:   "condition_match",
	ReasonHoldout:          "holdout_condition_value",
	ReasonEnrolment:        "super_condition_value",
}

var reasonTexts = [...]string{
	ReasonDisabled:         "Feature flag is disabled",
	ReasonNoGroupType:      "No group type",
	ReasonNoConditionMatch: "No matching condition set",
	ReasonOutOfRollout:     "Out of rollout bound",
	ReasonConditionMatch:   "Matched condition set ",
	ReasonHoldout:          "Holdout condition value",
	ReasonEnrolment:        "Super condition value",
}

// Code returns the reason in answers to clients.
func (r Reason) Code() string { return reasonCodes[r] }

// Describe returns the reason as a sentence. condition is the index of the
// condition set that decided.
func (r Reason) Describe(condition int) string {
	if r == ReasonConditionMatch {
		return reasonTexts[r] + strconv.Itoa(condition+1)
	}
	return reasonTexts[r]
}

// Cause explains why a flag has no value.
type Cause uint8

// The causes.
const (
	CauseNone        Cause = iota
	CauseDefinition        // the stored filters cannot be decoded
	CauseOperator          // an unknown operator, or a plugin without an answer
	CauseCohort            // a cohort is missing or cannot be evaluated
	CauseDependency        // a flag it depends on is missing or could not be computed
	CauseCycle             // flags depend on each other in a circle
	CauseUnavailable       // stored data could not be read
	CauseTooLarge          // the regular expressions of the flag or a cohort are over a limit
	CauseText              // a regular expression, and a text over match.MaxPatternText
	CauseBudget            // comparing texts needs more than the budget of the request
)

// Causes is the number of causes, CauseNone included.
const Causes = int(CauseBudget) + 1

var causeCodes = [Causes]string{
	CauseNone:        "",
	CauseDefinition:  "invalid_definition",
	CauseOperator:    "operator_unavailable",
	CauseCohort:      "cohort_unavailable",
	CauseDependency:  "missing_dependency",
	CauseCycle:       "dependency_cycle",
	CauseUnavailable: "stored_data_unavailable",
	CauseTooLarge:    "regex_too_large",
	CauseText:        "text_too_long",
	CauseBudget:      "evaluation_budget_spent",
}

// causeTexts are descriptions for clients. They contain nothing that JSON escapes.
var causeTexts = [Causes]string{
	CauseDefinition:  "The definition of the flag cannot be read",
	CauseOperator:    "An operator of the flag is not available",
	CauseCohort:      "A cohort of the flag cannot be evaluated",
	CauseDependency:  "A flag that this flag depends on cannot be evaluated",
	CauseCycle:       "Flags depend on each other in a circle",
	CauseUnavailable: "Stored data cannot be read",
	CauseTooLarge:    "The regular expressions of the flag are too large",
	CauseText:        "A property is too long for a regular expression",
	CauseBudget:      "The request needs too much work",
}

// Code returns the stable name of the cause.
func (c Cause) Code() string { return causeCodes[c] }

// failure returns why an outcome has no value.
func (o *outcome) failure() Cause {
	switch {
	case o.stage == settled:
		return CauseNone
	case o.cause == CauseNone:
		return CauseUnavailable
	}
	return o.cause
}
