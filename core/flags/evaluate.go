package flags

import (
	"github.com/guidonhq/guidon/core/match"
)

// waiting is a result that becomes another one once stored data has been
// read or plugins have answered. match.Unknown is final.
const waiting match.Result = 3

// outcome is what came out for one flag.
type outcome struct {
	stage     stage
	on        bool
	held      bool // held out: the value is the holdout's
	reason    Reason
	cause     Cause // set when stage is failed
	pass      uint8 // when it was computed last
	variant   int32
	condition int32 // index of the condition set the reason is about, or -1
}

// stage says how far a flag is.
type stage uint8

const (
	untouched stage = iota
	pending         // needs something that has not been read yet
	failed
	settled
)

func off(reason Reason, condition int32) outcome {
	return outcome{stage: settled, reason: reason, condition: condition, variant: noVariant}
}

func on(reason Reason, condition, variant int32) outcome {
	return outcome{stage: settled, on: true, reason: reason, condition: condition, variant: variant}
}

// flag returns the outcome of one flag, computing it when it is not settled
// in this pass. Circles have been cut by the compiler, so asking for a flag
// from within another one ends.
func (r *run) flag(at int32) *outcome {
	o := &r.outcomes[at]
	if o.stage >= failed || o.stage == pending && o.pass == r.pass {
		return o
	}
	f := &r.set.flags[at]
	if r.trace == nil {
		*o = r.evaluate(f)
	} else {
		*o = r.trace.flag(r, f)
	}
	o.pass = r.pass
	return o
}

// evaluate goes through the gates of a flag in their order.
func (r *run) evaluate(f *flag) outcome {
	switch {
	case !f.active:
		return off(ReasonDisabled, -1)
	case f.broken != nil:
		return outcome{stage: failed, cause: CauseDefinition}
	}
	if f.enrolment != nil {
		if o, decided := r.enrolled(f); decided {
			return o
		}
	}
	if f.holdout != nil {
		if o, decided := r.heldOut(f); decided {
			return o
		}
	}
	return r.conditions(f)
}

// enrolled is the gate for people who opted in or out themselves.
func (r *run) enrolled(f *flag) (outcome, bool) {
	e := f.enrolment
	if e.slot < 0 {
		yes := r.within(f, e.condition.rollout, person)
		r.trace.enrolment(e, nil, yes)
		if yes == match.False {
			return off(ReasonOutOfRollout, 0), true
		}
		return r.enrolment(yes), true
	}
	said, there := r.value(&r.person, e.slot, noSlot)
	if there != match.True {
		r.trace.enrolment(e, nil, there)
		return r.unanswered(there), there != match.False
	}
	if e.plain {
		yes := match.Of(said.Truthy())
		r.trace.enrolment(e, said, yes)
		return r.enrolment(yes), true
	}
	yes := r.matches(&e.condition)
	if yes == match.True {
		yes = r.within(f, e.condition.rollout, person)
	}
	r.trace.enrolment(e, said, yes)
	return r.enrolment(yes), true
}

func (r *run) enrolment(yes match.Result) outcome {
	switch yes {
	case match.True:
		return on(ReasonEnrolment, 0, noVariant)
	case match.False:
		return off(ReasonEnrolment, 0)
	default:
		return r.unanswered(yes)
	}
}

// unanswered is the outcome while something is missing, or for good.
func (r *run) unanswered(res match.Result) outcome {
	if res == waiting {
		return outcome{stage: pending}
	}
	return outcome{stage: failed, cause: r.cause}
}

// heldOut is the gate that keeps a share of the people out of many flags.
func (r *run) heldOut(f *flag) (outcome, bool) {
	id, there := r.identifier(f, f.subject)
	if there != match.True {
		return r.unanswered(there), there != match.False
	}
	h := f.holdout
	hash := 0.0
	if !h.share.everyone {
		hash, r.hash = bucket(r.hash, holdoutPrefix, id, "")
	}
	held := hash <= h.share.limit
	r.trace.holdout(h, id, hash, held)
	if !held {
		return outcome{}, false
	}
	o := on(ReasonHoldout, -1, noVariant)
	o.held = true
	return o, true
}

// conditions tries the condition sets in their order. A set that can never be
// told (its cohort is missing, its data cannot be read) leaves a doubt; when
// a later set matches with the value the doubtful one would have given, the
// doubt does not matter.
func (r *run) conditions(f *flag) outcome {
	best := off(ReasonNoGroupType, -1)
	var d doubt
	for i := range f.conditions {
		c := &f.conditions[i]
		r.trace.condition(r, i, c)
		reason, res := r.condition(f, c)
		r.trace.verdict(reason, res)
		switch {
		case res == waiting:
			r.lookAhead(f.conditions[i+1:])
			return outcome{stage: pending}
		case res == match.Unknown:
			r.doubt(&d, f, c)
			continue
		case reason == ReasonConditionMatch:
			variant, known := r.variant(f, c)
			if known != match.True {
				return r.unanswered(known)
			}
			return d.settle(on(reason, int32(i), variant))
		}
		if reason >= best.reason {
			best.reason, best.condition = reason, int32(i)
		}
		if f.earlyExit && reason == ReasonOutOfRollout {
			break
		}
	}
	return d.settle(best)
}

// lookAhead has the sets behind one that waits for plugins put their questions
// too, so that they go with the same call. Nothing else is read for them.
func (r *run) lookAhead(rest []condition) {
	if r.trace != nil || r.ahead || !r.plugins.open() {
		return
	}
	r.ahead = true
	for i := range rest {
		if c := &rest[i]; c.external && r.present(c.subject) {
			r.matches(c)
		}
	}
	r.ahead = false
}

// condition tells whether one set matches: its subject is there, its
// properties hold, its rollout lets the subject in. The reason is that of the
// step that decided.
func (r *run) condition(f *flag, c *condition) (Reason, match.Result) {
	if !r.present(c.subject) {
		return ReasonNoGroupType, match.False
	}
	if res := r.matches(c); res != match.True {
		return ReasonNoConditionMatch, res
	}
	if res := r.within(f, c.rollout, c.subject); res != match.True {
		return ReasonOutOfRollout, res
	}
	return ReasonConditionMatch, match.True
}

// matches is the conjunction of a set's filters: one that fails decides, one
// that cannot be told leaves the set open. A trace looks at all of them.
func (r *run) matches(c *condition) match.Result {
	all := match.True
	for i := range c.filters {
		res := r.filter(&c.filters[i], c.subject)
		if res == match.False && r.trace == nil {
			return match.False
		}
		all = both(all, res)
	}
	return all
}

// both is the conjunction of two results.
func both(a, b match.Result) match.Result {
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
