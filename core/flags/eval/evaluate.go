package eval

import (
	"github.com/guidonhq/guidon/core/flags/eval/bucket"
	"github.com/guidonhq/guidon/core/match"
)

// waiting is the result until stored data has been read or plugins have
// answered. match.Unknown is final.
const waiting match.Result = 3

// outcome is the result of one flag.
type outcome struct {
	stage     stage
	on        bool
	heldOut   bool // the value is that of the holdout
	reason    Reason
	cause     Cause // set when stage is failed
	round     uint8 // of the last computation
	variant   int32
	condition int32 // index of the condition set of the reason, or -1
	epoch     uint32
}

// stage is the progress of a flag.
type stage uint8

const (
	untouched stage = iota
	pending         // needs data that has not been read yet
	failed
	settled
)

func off(reason Reason, condition int32) outcome {
	return outcome{stage: settled, reason: reason, condition: condition, variant: noVariant}
}

func on(reason Reason, condition, variant int32) outcome {
	return outcome{stage: settled, on: true, reason: reason, condition: condition, variant: variant}
}

// flagOutcome returns the outcome of a flag. It computes a pending outcome once
// per round. Dependencies have no cycles (see breakCycles), so the recursion
// terminates.
func (e *Evaluation) flagOutcome(at int32) *outcome {
	o := &e.outcomes[at]
	if o.epoch == e.epoch && (o.stage >= failed || o.stage == pending && o.round == e.round) {
		return o
	}
	switch f := e.set.flags[at]; {
	case e.trace != nil:
		*o = e.trace.flag(e, f)
	case f.constant.stage == settled:
		*o = f.constant
	default:
		*o = e.evaluateFlag(f)
	}
	o.round, o.epoch = e.round, e.epoch
	return o
}

// evaluateFlag runs the checks of a flag in order.
func (e *Evaluation) evaluateFlag(f *flag) outcome {
	switch {
	case !f.active || !e.scope.inContext(f):
		return off(ReasonDisabled, -1)
	case f.broken != nil:
		return outcome{stage: failed, cause: f.cause}
	}
	if f.enrolment != nil {
		if o, decided := e.checkEnrolment(f); decided {
			return o
		}
	}
	if f.holdout != nil {
		if o, decided := e.checkHoldout(f); decided {
			return o
		}
	}
	return e.tryConditions(f)
}

// checkEnrolment decides for people who opted in or out.
func (e *Evaluation) checkEnrolment(f *flag) (outcome, bool) {
	check := f.enrolment
	if check.slot < 0 {
		yes := e.withinRollout(f, check.condition.rollout, person)
		e.trace.enrolment(check, nil, yes)
		if yes == match.False {
			return off(ReasonOutOfRollout, 0), true
		}
		return e.enrolmentOutcome(yes), true
	}
	value, found := e.value(&e.person, check.slot, noSlot)
	if found != match.True {
		e.trace.enrolment(check, nil, found)
		return e.unresolved(found), found != match.False
	}
	if check.plain {
		yes := match.Of(value.Truthy())
		e.trace.enrolment(check, value, yes)
		return e.enrolmentOutcome(yes), true
	}
	yes := e.matchFilters(&check.condition)
	if yes == match.True {
		yes = e.withinRollout(f, check.condition.rollout, person)
	}
	e.trace.enrolment(check, value, yes)
	return e.enrolmentOutcome(yes), true
}

func (e *Evaluation) enrolmentOutcome(yes match.Result) outcome {
	switch yes {
	case match.True:
		return on(ReasonEnrolment, 0, noVariant)
	case match.False:
		return off(ReasonEnrolment, 0)
	default:
		return e.unresolved(yes)
	}
}

// unresolved returns the outcome of a flag without a value: pending while data
// is missing, else failed.
func (e *Evaluation) unresolved(res match.Result) outcome {
	if res == waiting {
		return outcome{stage: pending}
	}
	return outcome{stage: failed, cause: e.cause}
}

// checkHoldout decides for people in the holdout.
func (e *Evaluation) checkHoldout(f *flag) (outcome, bool) {
	id, found := e.identifier(f, f.subject)
	if found != match.True {
		return e.unresolved(found), found != match.False
	}
	h := f.holdout
	hash := 0.0
	if !h.rollout.everyone {
		hash = e.buckets.hasher.Of(bucket.HoldoutPrefix, id, "")
	}
	held := hash <= h.rollout.limit
	e.trace.holdout(h, id, hash, held)
	if !held {
		return outcome{}, false
	}
	o := on(ReasonHoldout, -1, noVariant)
	o.heldOut = true
	return o, true
}

// tryConditions tries the condition sets in their order. A set with an unknown
// result (its cohort is missing, its data cannot be read) fails the flag, unless
// a later set matches with the value that the unknown set would have given.
func (e *Evaluation) tryConditions(f *flag) outcome {
	best := off(ReasonNoGroupType, -1)
	var d uncertainty
	for i := range f.conditions {
		c := &f.conditions[i]
		reason, res := e.tryCondition(f, i)
		switch {
		case res == waiting:
			e.lookAhead(f.conditions[i+1:])
			return outcome{stage: pending}
		case res == match.Unknown:
			e.addUncertainty(&d, f, c)
			continue
		case reason == ReasonConditionMatch:
			variant, known := e.pickVariant(f, c)
			if known != match.True {
				return e.unresolved(known)
			}
			return d.resolve(on(reason, int32(i), variant))
		}
		if reason >= best.reason {
			best.reason, best.condition = reason, int32(i)
		}
		if f.earlyExit && reason == ReasonOutOfRollout && !e.missesDevice(f, c.subject) {
			break
		}
	}
	return d.resolve(best)
}

// tryCondition is matchCondition of the i-th set, in a trace too.
func (e *Evaluation) tryCondition(f *flag, i int) (Reason, match.Result) {
	c := &f.conditions[i]
	if e.trace == nil {
		return e.matchCondition(f, c)
	}
	e.trace.condition(e, f, i)
	reason, res := e.matchCondition(f, c)
	e.trace.endCondition(reason, res)
	return reason, res
}

// lookAhead collects the pairs of the sets after one that waits for plugins, so
// that one call answers all of them. It requests no other data.
func (e *Evaluation) lookAhead(rest []condition) {
	if e.trace != nil || e.lookingAhead || !e.plugins.Open() {
		return
	}
	e.lookingAhead = true
	for i := range rest {
		if c := &rest[i]; c.external && e.hasSubject(c.subject) {
			e.matchFilters(c)
		}
	}
	e.lookingAhead = false
}

// matchCondition reports whether one set matches: the request has its subject,
// its properties match, and the subject is inside its rollout. The reason is
// that of the deciding step.
func (e *Evaluation) matchCondition(f *flag, c *condition) (Reason, match.Result) {
	if !e.hasSubject(c.subject) {
		return ReasonNoGroupType, match.False
	}
	if e.missesDevice(f, c.subject) {
		return ReasonOutOfRollout, match.False
	}
	if res := e.matchFilters(c); res != match.True {
		return ReasonNoConditionMatch, res
	}
	if res := e.withinRollout(f, c.rollout, c.subject); res != match.True {
		return ReasonOutOfRollout, res
	}
	return ReasonConditionMatch, match.True
}

// matchFilters returns the conjunction of the filters of a set. It stops at
// False, except in a trace, which evaluates all filters.
func (e *Evaluation) matchFilters(c *condition) match.Result {
	if e.trace != nil {
		return e.matchTraced(c)
	}
	all := match.True
	for i := range c.filters {
		res := e.evaluateFilter(&c.filters[i], c.subject)
		if res == match.False {
			return match.False
		}
		if res != match.True {
			all = and(all, res)
		}
	}
	return all
}

func (e *Evaluation) matchTraced(c *condition) match.Result {
	all := match.True
	for i := range c.filters {
		res := e.filter(&c.filters[i], c.subject)
		if res == match.False && all != match.False {
			defer e.payFromTrace()()
		}
		all = and(all, res)
	}
	return all
}

// and returns the conjunction of two results.
func and(a, b match.Result) match.Result {
	switch {
	case a == match.False || b == match.False:
		return match.False
	case a == waiting || b == waiting:
		return waiting
	case a == match.Unknown || b == match.Unknown:
		return match.Unknown
	}
	return match.True
}
