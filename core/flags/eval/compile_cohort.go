package eval

import (
	"strings"
)

// cohort is one compiled cohort.
type cohort struct {
	id     int64
	name   string
	static bool
	broken bool // its properties cannot be understood
	root   *branch
}

// branch is a group of filters, all or any of which must hold.
type branch struct {
	any      bool
	filters  []filter
	branches []branch
}

func (c *compiler) cohorts(in []CohortDefinition) {
	c.cohortsBy = make(map[int64]int32, len(in))
	for i := range in {
		if !in[i].Deleted {
			c.cohortsBy[in[i].ID] = int32(len(c.set.cohorts))
			c.set.cohorts = append(c.set.cohorts, cohort{id: in[i].ID, name: in[i].Name, static: in[i].Static})
		}
	}
	for i := range in {
		if in[i].Deleted || in[i].Static {
			continue
		}
		out := &c.set.cohorts[c.cohortsBy[in[i].ID]]
		root, err := readObject(in[i].Filters)
		if err != nil {
			out.broken = len(in[i].Filters) > 0
			continue
		}
		if inner := root.given("properties"); inner != nil {
			ok := false
			if root, ok = objectOf(inner); !ok {
				out.broken = true
				continue
			}
		}
		out.root, out.broken = c.branch(root)
	}
}

// branch compiles a group of a cohort; nil is the empty group, in which
// everybody is.
func (c *compiler) branch(in fields) (out *branch, broken bool) {
	if len(in) == 0 {
		return nil, false
	}
	out = &branch{}
	switch strings.ToUpper(looseText(in.given("type"))) {
	case "OR":
		out.any = true
	case "AND", "PROPERTY":
	default:
		return nil, true
	}
	r := &filterReader{}
	for _, item := range r.list("values", in.given("values")) {
		f := r.object("values", item)
		if _, nested := f["values"]; !nested && len(f) > 0 {
			p := r.property("values", item)
			leaf := c.filter(&p, person)
			leaf.negate = leaf.negate != p.Negation
			leaf.place = int32(len(out.filters))
			out.filters = append(out.filters, leaf)
			continue
		}
		inner, bad := c.branch(f)
		if bad {
			return nil, true
		}
		if inner == nil {
			inner = &branch{}
		}
		out.branches = append(out.branches, *inner)
	}
	return out, r.err != nil
}
