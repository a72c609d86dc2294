package eval

import (
	"slices"

	"github.com/guidonhq/guidon/core/flags/eval/cycle"
)

// uncut is the flags and cohorts of a set with circular dependencies, as they were
// before breakCycles, by place. The next set begins with them.
type uncut struct {
	flags   map[int32]*flag
	cohorts map[int32]*cohort
}

// breakCycles disables the filters of circular dependencies between flags, so
// that evaluation terminates. Dependencies through cohorts are included. Flags and
// cohorts may belong to an older set: those in a cycle are replaced by copies.
func (s *Set) breakCycles() {
	numbers := cycle.Components(len(s.flags)+len(s.cohorts), func(node int, visit func(to int)) {
		s.eachLink(node, func(_ *filter, to int) { visit(to) })
	})
	for node := range numbers {
		circular := func(to int) bool { return numbers[to] == numbers[node] }
		cut := false
		s.eachLink(node, func(_ *filter, to int) { cut = cut || circular(to) })
		if !cut {
			continue
		}
		s.replaceByCopy(node)
		s.eachLink(node, func(f *filter, to int) {
			if circular(to) {
				f.kind, f.cause = byNothing, CauseCycle
			}
		})
	}
}

func (s *Set) replaceByCopy(node int) {
	if at := int32(node); node < len(s.flags) {
		if s.uncut.flags == nil {
			s.uncut.flags = map[int32]*flag{}
		}
		s.uncut.flags[at] = s.flags[at]
		s.flags[at] = s.flags[at].clone()
		return
	}
	if s.uncut.cohorts == nil {
		s.uncut.cohorts = map[int32]*cohort{}
	}
	at := int32(node - len(s.flags))
	s.uncut.cohorts[at] = s.cohorts[at]
	s.cohorts[at] = s.cohorts[at].clone()
}

// clone returns a copy whose filters can be changed.
func (f *flag) clone() *flag {
	out := *f
	out.conditions = slices.Clone(f.conditions)
	for i := range out.conditions {
		out.conditions[i].filters = slices.Clone(out.conditions[i].filters)
	}
	if f.enrolment != nil {
		e := *f.enrolment
		e.condition.filters = slices.Clone(e.condition.filters)
		out.enrolment = &e
	}
	return &out
}

// clone returns a copy whose filters can be changed.
func (c *cohort) clone() *cohort {
	out := *c
	if c.root != nil {
		root := c.root.clone()
		out.root = &root
	}
	return &out
}

func (b *branch) clone() branch {
	out := branch{any: b.any, filters: slices.Clone(b.filters), branches: slices.Clone(b.branches)}
	for i := range out.branches {
		out.branches[i] = b.branches[i].clone()
	}
	return out
}

// eachLink calls fn for every filter of a node on a flag or a cohort. Nodes are the
// flags, then the cohorts.
func (s *Set) eachLink(node int, fn func(f *filter, to int)) {
	each := func(filters []filter) {
		for i := range filters {
			switch f := &filters[i]; f.kind {
			case byFlag:
				fn(f, int(f.target))
			case byCohort:
				fn(f, len(s.flags)+int(f.target))
			default:
			}
		}
	}
	if node < len(s.flags) {
		f := s.flags[node]
		if f == nil || !f.uses.links() {
			return
		}
		if f.enrolment != nil {
			each(f.enrolment.condition.filters)
		}
		for i := range f.conditions {
			each(f.conditions[i].filters)
		}
		return
	}
	if c := s.cohorts[node-len(s.flags)]; c != nil && c.root != nil {
		eachBranch(c.root, each)
	}
}

func eachBranch(b *branch, fn func([]filter)) {
	fn(b.filters)
	for i := range b.branches {
		eachBranch(&b.branches[i], fn)
	}
}
