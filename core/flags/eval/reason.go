package eval

import "strconv"

// Reason is why a flag has its value.
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

// Code is the reason as clients know it.
func (r Reason) Code() string { return reasonCodes[r] }

// Describe is the reason as one sentence for people; condition is the index
// of the condition set it is about.
func (r Reason) Describe(condition int) string {
	if r == ReasonConditionMatch {
		return reasonTexts[r] + strconv.Itoa(condition+1)
	}
	return reasonTexts[r]
}

// Cause is why a flag could not be computed.
type Cause uint8

// The causes.
const (
	CauseNone        Cause = iota
	CauseDefinition        // the stored filters cannot be understood
	CauseOperator          // an operator nobody knows, or a plugin gave no answer
	CauseCohort            // a cohort is missing or cannot be evaluated
	CauseDependency        // a flag it depends on is missing or could not be computed
	CauseCycle             // flags depend on each other in a circle
	CauseUnavailable       // stored data could not be read
)

// Causes is the number of causes, CauseNone included.
const Causes = int(CauseUnavailable) + 1

var causeCodes = [Causes]string{
	CauseNone:        "",
	CauseDefinition:  "invalid_definition",
	CauseOperator:    "operator_unavailable",
	CauseCohort:      "cohort_unavailable",
	CauseDependency:  "missing_dependency",
	CauseCycle:       "dependency_cycle",
	CauseUnavailable: "stored_data_unavailable",
}

// Code is the cause as a stable word.
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
