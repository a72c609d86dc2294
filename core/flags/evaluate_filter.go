package flags

import "github.com/guidonhq/guidon/core/match"

// noSlot is the place of no property.
const noSlot int32 = -1

// filter answers one filter for the subject of its condition set.
func (r *run) filter(f *filter, subject int32) match.Result {
	if r.trace != nil {
		return r.trace.filter(r, f, subject)
	}
	return r.answer(f, subject)
}

func (r *run) answer(f *filter, subject int32) match.Result {
	res := match.Unknown
	switch f.kind {
	case byProperty:
		res = r.property(f, subject)
	case byCohort:
		res = r.cohort(f.target)
	case byFlag:
		res = r.dependency(f)
	default:
		r.cause = f.cause
	}
	if f.negate {
		res = opposite(res)
	}
	return res
}

func opposite(res match.Result) match.Result {
	if res == waiting {
		return waiting
	}
	return res.Not()
}

func (r *run) subject(at int32) *subject {
	if at >= 0 {
		return &r.groups[at]
	}
	return &r.person
}

// property asks a filter about a property of the subject. A property that
// the request did not give makes the stored ones wanted.
func (r *run) property(f *filter, at int32) match.Result {
	if f.reads != nil {
		v, there := r.several(f, r.subject(at))
		if there != match.True {
			return there
		}
		return r.test(f, &v)
	}
	v, there := r.value(r.subject(at), f.slot, f.spare)
	if there == match.True || there == match.False {
		return r.test(f, v)
	}
	return there
}

// several reads the properties that a plugin looks at: True with the object of
// those that are there.
func (r *run) several(f *filter, s *subject) (match.Value, match.Result) {
	start := len(r.arena)
	for i, name := range f.test.Reads() {
		switch v, there := r.value(s, f.reads[i], noSlot); there {
		case match.True:
			r.arena = match.AppendProperty(r.arena, start, name, v)
		case match.False:
		default:
			r.arena = r.arena[:start]
			return match.Value{}, there
		}
	}
	var v match.Value
	v, r.arena = match.CloseObject(r.arena, start)
	return v, match.True
}

// test matches a value, and waits when a plugin has yet to say something.
func (r *run) test(f *filter, v *match.Value) match.Result {
	res := f.test.Match(v, &r.env)
	if res != match.Unknown {
		return res
	}
	r.cause = CauseOperator
	if r.plugins.open() {
		return waiting
	}
	return res
}

var missing match.Value

// value reads a property: True with the value, False when there is none,
// waiting while the stored ones have not been read, Unknown when they could
// not be. spare is read in place of an empty slot.
func (r *run) value(s *subject, slot, spare int32) (*match.Value, match.Result) {
	if at := &s.slots[slot]; at.turn == r.turn {
		return &at.value, match.True
	}
	switch s.stored {
	case unread:
		s.wanted = s.wanted || !r.ahead
		return &missing, waiting
	case unreadable:
		r.cause = CauseUnavailable
		return &missing, match.Unknown
	case read:
	}
	if spare != noSlot {
		if at := &s.slots[spare]; at.turn == r.turn {
			return &at.value, match.True
		}
	}
	return &missing, match.False
}

// dependency asks what another flag came to.
func (r *run) dependency(f *filter) match.Result {
	o := r.flag(f.target)
	r.trace.dependsOn(&r.set.flags[f.target])
	switch o.stage {
	case pending, untouched:
		return waiting
	case failed:
		r.cause = CauseDependency
		return match.Unknown
	case settled:
	}
	return match.Of(f.expect.holds(&r.set.flags[f.target], o))
}

func (e *expectation) holds(f *flag, o *outcome) bool {
	switch {
	case e.never:
		return false
	case e.variant != "":
		return o.on && f.named(o) == e.variant
	}
	return o.on == e.on
}

// named is the variant key of an outcome, or nothing.
func (f *flag) named(o *outcome) string {
	switch {
	case o.held:
		return f.holdout.result.key
	case o.on && o.variant != noVariant:
		return f.variants[o.variant].key
	}
	return ""
}

// cohort tells whether the person is in a cohort, once per pass.
func (r *run) cohort(at int32) match.Result {
	m := &r.cohorts[at]
	if r.trace == nil && m.turn == r.turn && (m.result != waiting || m.pass == r.pass) {
		return m.result
	}
	res := r.member(&r.set.cohorts[at])
	*m = membership{turn: r.turn, pass: r.pass, result: res}
	return res
}

func (r *run) member(c *cohort) match.Result {
	switch {
	case c.broken:
		r.cause = CauseCohort
		return match.Unknown
	case c.static:
		return r.listed(c.id)
	case c.root == nil:
		return match.True
	}
	return r.branch(c.root)
}

// branch combines a group of a cohort. All of nothing hold, any of nothing
// does not.
func (r *run) branch(b *branch) match.Result {
	if len(b.filters)+len(b.branches) == 0 {
		return match.Of(!b.any)
	}
	all := match.True
	open := func() bool { return all != match.False || r.trace != nil }
	for i := 0; i < len(b.filters) && open(); i++ {
		all = b.add(all, r.filter(&b.filters[i], person))
	}
	for i := 0; i < len(b.branches) && open(); i++ {
		all = b.add(all, r.branch(&b.branches[i]))
	}
	if b.any {
		return opposite(all)
	}
	return all
}

// add takes one more result into the conjunction; a group of alternatives is
// the opposite of the conjunction of opposites.
func (b *branch) add(all, res match.Result) match.Result {
	if b.any {
		res = opposite(res)
	}
	return both(all, res)
}
