package eval

import (
	"maps"
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/eval/definition"
)

// build makes the set that of the definitions: it gives places to the flags and
// cohorts that came, and compiles the new, changed and affected ones.
func (c *compiler) build(defs []Definition, cohorts []CohortDefinition) {
	s, names := c.set, namesOf{flags: map[string]bool{}, cohorts: map[int64]bool{}}
	s.placeCohorts(cohorts, &names)
	s.placeFlags(defs, &names)
	compileCohorts := toCompile(c, &names, s.cohortTable.Order, s.cohorts, func(x *cohort) (*uses, int64) { return &x.uses, x.patterns })
	compileFlags := toCompile(c, &names, s.table.Order, s.flags, func(f *flag) (*uses, int64) { return &f.uses, f.patterns })
	for _, i := range compileCohorts {
		s.cohorts[s.cohortTable.Order[i]] = c.cohort(s.cohortTable.Stored[i])
	}
	for _, i := range compileFlags {
		s.flags[s.table.Order[i]] = c.flag(s.table.Stored[i])
	}
	s.overfull = c.programs.Exceeded()
	s.summarize()
}

// namesOf is the flags and cohorts that came, went or got another key: definitions
// that refer to them are compiled again.
type namesOf struct {
	flags   map[string]bool // keys and ids
	cohorts map[int64]bool
}

func (n *namesOf) addFlag(d *Definition) {
	n.flags[d.Key], n.flags[strconv.FormatInt(d.ID, 10)] = true, true
}

// affect reports whether a definition with these uses is to be compiled again.
func (n *namesOf) affect(u *uses) bool {
	if u.operators {
		return true
	}
	for _, name := range u.flags {
		if n.flags[name] {
			return true
		}
	}
	for _, id := range u.cohorts {
		if n.cohorts[id] {
			return true
		}
	}
	return false
}

// toCompile returns the definitions to compile, by their index in order. It releases
// their former uses, and counts the regular expressions of the rest.
func toCompile[T any](c *compiler, names *namesOf, order []int32, items []*T, of func(*T) (*uses, int64)) (list []int) {
	for i, at := range order {
		if items[at] == nil {
			list = append(list, i)
			continue
		}
		u, patterns := of(items[at])
		if names.affect(u) {
			c.set.release(u)
			list = append(list, i)
			continue
		}
		c.programs.Keep(patterns)
	}
	return list
}

// placeFlags replaces the definitions of flags and updates their keys. Two flags may
// have exchanged theirs.
func (s *Set) placeFlags(defs []Definition, names *namesOf) {
	c := definition.Update(&s.table, defs, func(f *flag) { s.release(&f.uses) })
	s.flags = s.table.Items
	renamed := slices.ContainsFunc(c.Changed, func(p definition.Pair[Definition]) bool { return p.Old.Key != p.New.Key })
	if !renamed && len(c.Added)+len(c.Removed) == 0 {
		return
	}
	s.byKey = maps.Clone(s.byKey)
	leave := func(d *Definition) {
		delete(s.byKey, d.Key)
		names.addFlag(d)
	}
	enter := func(d *Definition) {
		s.byKey[d.Key], _ = s.table.Place(d.ID)
		names.addFlag(d)
	}
	for _, d := range c.Removed {
		leave(d)
	}
	for _, p := range c.Changed {
		if p.Old.Key != p.New.Key {
			leave(p.Old)
		}
	}
	for _, p := range c.Changed {
		if p.Old.Key != p.New.Key {
			enter(p.New)
		}
	}
	for _, d := range c.Added {
		enter(d)
	}
}

// placeCohorts replaces the definitions of cohorts.
func (s *Set) placeCohorts(defs []CohortDefinition, names *namesOf) {
	c := definition.Update(&s.cohortTable, defs, func(x *cohort) { s.release(&x.uses) })
	s.cohorts = s.cohortTable.Items
	for _, d := range slices.Concat(c.Added, c.Removed) {
		names.cohorts[d.ID] = true
	}
}

// summarize computes what depends on all flags and cohorts.
func (s *Set) summarize() {
	s.active, s.continuous = make([]int32, 0, len(s.table.Order)), nil
	s.scoped, s.byDevice = false, false
	linked := false
	for _, at := range s.table.Order {
		f := s.flags[at]
		linked = linked || f.uses.links()
		if !f.active {
			continue
		}
		s.active = append(s.active, at)
		s.scoped = s.scoped || f.runtime != AnyRuntime || len(f.contexts) > 0
		s.byDevice = s.byDevice || f.device
		if f.continuous {
			s.continuous = append(s.continuous, f.key)
		}
	}
	for _, c := range s.cohorts {
		linked = linked || c != nil && c.uses.links()
	}
	s.located = s.people.UsesPrefix("$geoip_")
	s.uncut = uncut{}
	if linked {
		s.breakCycles()
	}
}
