package eval

import (
	"slices"

	"github.com/guidonhq/guidon/core/flags/eval/schema"
)

// Update is Compile, and takes the flags and cohorts that did not change from old,
// the set of an earlier moment. Its cost beside a comparison of the definitions is
// that of the flags and cohorts that changed, that name one which came, went or got
// another key, or that have an operator of a plugin. old must have been compiled
// with the same options; nil is none. It stays valid.
func Update(old *Set, defs []Definition, cohorts []CohortDefinition, groupTypes map[string]int, opts CompileOptions) *Set {
	if old != nil && old.hasGroupTypes(groupTypes) && !old.overfull && !old.isSparse() {
		c := newCompiler(old.next(), opts)
		c.build(defs, cohorts)
		if !c.set.overfull {
			return c.set
		}
	}
	return Compile(defs, cohorts, groupTypes, opts)
}

// uses is what a definition refers to.
type uses struct {
	slots     []slotUse
	flags     []string // keys or ids, unknown ones too
	cohorts   []int64  // ids, unknown ones too
	operators bool     // of plugins, or unknown ones
}

type slotUse struct{ subject, slot int32 }

func (u *uses) links() bool { return len(u.flags)+len(u.cohorts) > 0 }

func (s *Set) hasGroupTypes(types map[string]int) bool {
	for _, g := range s.groups {
		if index, ok := types[g.name]; !ok || index != g.index {
			return false
		}
	}
	return len(types) == len(s.groups)
}

// isSparse reports whether most slots or places of the set are unused, so that it is
// better compiled from nothing.
func (s *Set) isSparse() bool {
	const least = 64
	sparse := func(unused, all int) bool { return unused > least && unused > all/2 }
	for i := range s.groups {
		if g := &s.groups[i].schema; sparse(g.Unused(), g.Len()) {
			return true
		}
	}
	return sparse(s.people.Unused(), s.people.Len()) || sparse(s.table.Free(), len(s.flags)) || sparse(s.cohortTable.Free(), len(s.cohorts))
}

// next returns a copy of the set that can be changed, without cut cycles. Flags,
// cohorts and the maps are shared: they are replaced, not changed.
func (s *Set) next() *Set {
	n := *s
	n.table, n.cohortTable = s.table.Clone(), s.cohortTable.Clone()
	n.flags, n.cohorts = n.table.Items, n.cohortTable.Items
	for at, f := range s.uncut.flags {
		n.flags[at] = f
	}
	for at, c := range s.uncut.cohorts {
		n.cohorts[at] = c
	}
	n.people, n.groups = s.people.Clone(), slices.Clone(s.groups)
	for i := range n.groups {
		n.groups[i].schema = s.groups[i].schema.Clone()
	}
	return &n
}

// schemaOf returns the properties of a subject.
func (s *Set) schemaOf(subject int32) *schema.Schema {
	if subject >= 0 {
		return &s.groups[subject].schema
	}
	return &s.people
}

// slot returns the slot of a property that the current definition reads.
func (c *compiler) slot(subject int32, name string) int32 {
	at := c.set.schemaOf(subject).Use(name)
	c.uses.slots = append(c.uses.slots, slotUse{subject, at})
	return at
}

func (s *Set) release(u *uses) {
	for _, x := range u.slots {
		s.schemaOf(x.subject).Release(x.slot)
	}
}
