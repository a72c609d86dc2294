package eval

import "github.com/guidonhq/guidon/core/flags/eval/reason"

// Reason explains the value of a flag. The reasons are ordered by precedence.
type Reason = reason.Reason

// The reasons.
const (
	ReasonDisabled         = reason.Disabled
	ReasonNoGroupType      = reason.NoGroupType
	ReasonNoConditionMatch = reason.NoConditionMatch
	ReasonOutOfRollout     = reason.OutOfRollout
	ReasonConditionMatch   = reason.ConditionMatch
	ReasonHoldout          = reason.Holdout
	ReasonEnrolment        = reason.Enrolment
)

// Cause explains why a flag has no value.
type Cause = reason.Cause

// The causes.
const (
	CauseNone        = reason.None
	CauseDefinition  = reason.Definition
	CauseOperator    = reason.Operator
	CauseCohort      = reason.Cohort
	CauseDependency  = reason.Dependency
	CauseCycle       = reason.Cycle
	CauseUnavailable = reason.Unavailable
	CauseTooLarge    = reason.TooLarge
	CauseText        = reason.Text
	CauseBudget      = reason.Budget
)

// Causes is the number of causes, CauseNone included.
const Causes = reason.Causes

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
