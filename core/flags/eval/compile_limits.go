package eval

import (
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/match"
)

// programs adds up the sizes of the regular expressions of a project, before
// they are compiled. A definition over a limit is left out: it fails alone. The
// definitions that fit are admitted in their order, so that a project has the
// same flags after every start.
type programs struct {
	limits match.Limits
	total  int64
}

// admit adds a definition with a size. kind is the word for it.
func (p *programs) admit(kind string, size int64, err error) error {
	if err == nil {
		err = p.limits.CheckDefinition(kind, size)
	}
	if err == nil {
		err = p.limits.CheckProject(kind, size, p.total)
	}
	if err == nil {
		p.total += size
	}
	return err
}

func (p *programs) admitFlag(in *filters.Filters) (int64, error) {
	size, err := flagPatterns(in, p.limits)
	return size, p.admit("flag", size, err)
}

func (p *programs) admitCohort(in *filters.Tree) (int64, error) {
	size, err := cohortPatterns(in, p.limits)
	return size, p.admit("cohort", size, err)
}

// flagPatterns returns the size of the regular expressions of a flag, and an
// Invalid fault for one over limits.Expression. It compiles nothing.
func flagPatterns(in *filters.Filters, limits match.Limits) (int64, error) {
	total := int64(0)
	for _, sets := range [][]filters.ConditionSet{in.Groups, in.SuperGroups} {
		for i := range sets {
			size, err := patterns(sets[i].Properties, limits)
			if total += size; err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

// cohortPatterns is flagPatterns for the filters of a cohort.
func cohortPatterns(in *filters.Tree, limits match.Limits) (int64, error) {
	if in == nil {
		return 0, nil
	}
	total, err := patterns(in.Properties, limits)
	for i := 0; i < len(in.Trees) && err == nil; i++ {
		var size int64
		size, err = cohortPatterns(&in.Trees[i], limits)
		total += size
	}
	return total, err
}

func patterns(list []filters.Property, limits match.Limits) (int64, error) {
	total := int64(0)
	for i := range list {
		size, err := match.CheckPattern(limits, list[i].Operator, list[i].Value)
		if total += size; err != nil {
			return total, err
		}
		if total > limits.Definition {
			break // the rest cannot make it smaller
		}
	}
	return total, nil
}

// Patterns returns the size of the compiled regular expressions of the set,
// without those of one flag and of one cohort; 0 is none.
func (s *Set) Patterns(exceptFlag, exceptCohort int64) int64 {
	total := int64(0)
	for i := range s.flags {
		if f := &s.flags[i]; f.id != exceptFlag {
			total += f.patterns
		}
	}
	for i := range s.cohorts {
		if c := &s.cohorts[i]; c.id != exceptCohort {
			total += c.patterns
		}
	}
	return total
}
