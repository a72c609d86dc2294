package eval

import (
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/match"
)

// noSlot is the slot of no property.
const noSlot int32 = -1

// filter evaluates one filter for the subject of its condition set.
func (e *Evaluation) filter(f *filter, subject int32) match.Result {
	if e.trace != nil {
		return e.trace.filter(e, f, subject)
	}
	return e.evaluateFilter(f, subject)
}

func (e *Evaluation) evaluateFilter(f *filter, subject int32) match.Result {
	res := match.Unknown
	switch f.kind {
	case byProperty:
		res = e.matchProperty(f, subject)
	case byCohort:
		res = e.cohortResult(f.target)
	case byFlag:
		res = e.matchDependency(f)
	default:
		e.cause = f.cause
	}
	if f.negate {
		res = negate(res)
	}
	return res
}

func negate(res match.Result) match.Result {
	if res == waiting {
		return waiting
	}
	return res.Not()
}

// matchProperty matches a property of the subject. A property that the request
// does not give requires the stored properties.
func (e *Evaluation) matchProperty(f *filter, at int32) match.Result {
	if f.reads != nil {
		v, found := e.readProperties(f, e.subject(at))
		if found != match.True {
			return found
		}
		return e.testValue(f, &v)
	}
	v, found := e.value(e.subject(at), f.slot, f.fallbackSlot)
	if found == match.True || found == match.False {
		return e.testValue(f, v)
	}
	return found
}

// readProperties reads the properties that an operator of a plugin tests. It
// returns True with an object of the existing ones.
func (e *Evaluation) readProperties(f *filter, s *subject) (match.Value, match.Result) {
	start := len(e.arena)
	for i, name := range f.test.Reads() {
		switch v, found := e.value(s, f.reads[i], noSlot); found {
		case match.True:
			e.arena = match.AppendProperty(e.arena, start, name, v)
		case match.False:
		default:
			e.arena = e.arena[:start]
			return match.Value{}, found
		}
	}
	var v match.Value
	v, e.arena = match.CloseObject(e.arena, start)
	return v, match.True
}

var refusals = [...]Cause{match.NotRefused: CauseOperator, match.TextTooLong: CauseText, match.BudgetSpent: CauseBudget}

// testValue matches a value. The result is waiting while plugins have open pairs.
func (e *Evaluation) testValue(f *filter, v *match.Value) match.Result {
	res := f.test.Match(v, &e.env)
	if res != match.Unknown {
		return res
	}
	if !f.test.External() {
		e.cause = refusals[e.env.Budget.Refusal()]
		return match.Unknown
	}
	e.cause = CauseOperator
	if e.plugins.Open() {
		return waiting
	}
	return match.Unknown
}

var missing match.Value

// value reads a property. The result is True with the value, False without one,
// waiting until the stored properties are read, or Unknown if they are
// unreadable. The fallback slot replaces an empty slot.
func (e *Evaluation) value(s *subject, slot, fallback int32) (*match.Value, match.Result) {
	if at := &s.slots[slot]; at.epoch == e.epoch {
		return &at.value, match.True
	}
	switch s.stored {
	case unread:
		s.wanted = s.wanted || !e.lookingAhead
		return &missing, waiting
	case unreadable:
		e.cause = CauseUnavailable
		return &missing, match.Unknown
	case read:
	}
	if fallback != noSlot {
		if at := &s.slots[fallback]; at.epoch == e.epoch {
			return &at.value, match.True
		}
	}
	return &missing, match.False
}

// matchDependency compares the value of another flag with the expected one.
func (e *Evaluation) matchDependency(f *filter) match.Result {
	o := e.flagOutcome(f.target)
	e.trace.dependsOn(e.set.flags[f.target])
	switch o.stage {
	case pending, untouched:
		return waiting
	case failed:
		e.cause = CauseDependency
		return match.Unknown
	case settled:
	}
	return match.Of(e.set.flags[f.target].meets(&f.expect, o))
}

// meets reports whether an outcome is the value that a dependency requires.
func (f *flag) meets(x *filters.Expectation, o *outcome) bool {
	switch {
	case x.Never:
		return false
	case x.Variant != "":
		return f.variantKey(o) == x.Variant // "" unless it is on
	}
	return o.on == x.On
}

// variantKey returns the variant key of an outcome, or "".
func (f *flag) variantKey(o *outcome) string {
	switch {
	case o.heldOut:
		return f.holdout.result.key
	case o.on && o.variant != noVariant:
		return f.variants[o.variant].key
	}
	return ""
}

// cohortResult reports whether the person is in a cohort, once per round.
func (e *Evaluation) cohortResult(at int32) match.Result {
	m := &e.stored.cohorts[at]
	if m.epoch == e.epoch && (m.result != waiting || m.round == e.round) {
		if e.trace != nil {
			e.explainCohortAgain(at)
		}
		if m.result == match.Unknown {
			e.cause = m.cause
		}
		return m.result
	}
	res := e.inCohort(e.set.cohorts[at])
	*m = membership{epoch: e.epoch, round: e.round, result: res, cause: e.cause}
	return res
}

// explainCohortAgain traces the filters of a cohort whose result is known. The budget of the trace may run
// out, so the result of this time does not count.
func (e *Evaluation) explainCohortAgain(at int32) {
	defer e.payFromTrace()()
	e.inCohort(e.set.cohorts[at])
}

func (e *Evaluation) inCohort(c *cohort) match.Result {
	switch {
	case c.broken != nil:
		e.cause = c.cause
		return match.Unknown
	case c.static:
		return e.onList(c.id)
	case c.root == nil:
		return match.True
	}
	return e.matchBranch(c.root)
}

// matchBranch returns the result of a group of a cohort. Of an empty group, all
// match and any does not.
func (e *Evaluation) matchBranch(b *branch) match.Result {
	if len(b.filters)+len(b.branches) == 0 {
		return match.Of(!b.any)
	}
	all := match.True
	open := func() bool {
		if all == match.False && e.trace != nil {
			e.env.Budget = &e.trace.budget
		}
		return all != match.False || e.trace != nil
	}
	before := e.env.Budget
	for i := 0; i < len(b.filters) && open(); i++ {
		all = b.conjoin(all, e.filter(&b.filters[i], person))
	}
	for i := 0; i < len(b.branches) && open(); i++ {
		all = b.conjoin(all, e.matchBranch(&b.branches[i]))
	}
	e.env.Budget = before
	if b.any {
		return negate(all)
	}
	return all
}

// conjoin adds a result to the conjunction. By De Morgan's law a group of
// alternatives is the negated conjunction of negated results.
func (b *branch) conjoin(all, res match.Result) match.Result {
	if b.any {
		res = negate(res)
	}
	return and(all, res)
}
