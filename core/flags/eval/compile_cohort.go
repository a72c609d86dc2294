package eval

import "github.com/guidonhq/guidon/core/flags/eval/filters"

// cohort is one compiled cohort.
type cohort struct {
	id     int64
	name   string
	static bool
	broken error // its filters cannot be decoded, or are over a limit
	cause  Cause // of broken

	patterns int64 // size of the compiled regular expressions
	root     *branch
	uses     uses
}

// branch is a group of filters. All of them must match, or any.
type branch struct {
	any      bool
	filters  []filter
	branches []branch
}

// cohort compiles a cohort. Every cohort has its place by now.
func (c *compiler) cohort(d *CohortDefinition) *cohort {
	out := &cohort{id: d.ID, name: d.Name, static: d.Static}
	if d.Static {
		return out
	}
	c.uses = &out.uses
	tree, err := filters.ParseTree(d.Filters)
	if err != nil {
		out.broken, out.cause = err, CauseCohort
	}
	size, err := c.programs.AdmitCohort(tree)
	if err != nil {
		out.broken, out.cause = err, CauseTooLarge
		return out
	}
	out.patterns, out.root = size, c.branch(tree)
	return out
}

// branch compiles a tree of filters; nil is the empty group, which contains
// everyone.
func (c *compiler) branch(in *filters.Tree) *branch {
	if in == nil {
		return nil
	}
	out := &branch{any: in.Any}
	for i := range in.Properties {
		p := &in.Properties[i]
		leaf := c.filter(p, person)
		leaf.negate = leaf.negate != p.Negation
		leaf.place = int32(i)
		out.filters = append(out.filters, leaf)
	}
	for i := range in.Trees {
		out.branches = append(out.branches, *c.branch(&in.Trees[i]))
	}
	return out
}
