package filters

import "github.com/guidonhq/guidon/core/match"

// Programs adds up the sizes of the regular expressions of a project, before
// they are compiled. A definition over a limit is left out: it fails alone. The
// definitions that fit are admitted in their order, so that a project has the
// same flags after every start.
type Programs struct {
	Limits match.Limits
	total  int64

	exceeded bool
}

// Keep counts a definition that was admitted before.
func (p *Programs) Keep(size int64) { p.total += size }

// Exceeded reports whether a definition was refused because of the limit of the
// project: another order or other definitions may admit it.
func (p *Programs) Exceeded() bool { return p.exceeded }

// admit adds a definition with a size. kind is the word for it.
func (p *Programs) admit(kind string, size int64, err error) error {
	if err == nil {
		err = p.Limits.CheckDefinition(kind, size)
	}
	if err == nil {
		err = p.Limits.CheckProject(kind, size, p.total)
		p.exceeded = p.exceeded || err != nil
	}
	if err == nil {
		p.total += size
	}
	return err
}

// AdmitFlag returns the size of the regular expressions of a flag. It fails with
// an Invalid fault if they are over a limit. It compiles nothing.
func (p *Programs) AdmitFlag(in *Filters) (int64, error) {
	size, err := flagPatterns(in, p.Limits)
	return size, p.admit("flag", size, err)
}

// AdmitCohort is AdmitFlag for the filters of a cohort.
func (p *Programs) AdmitCohort(in *Tree) (int64, error) {
	size, err := cohortPatterns(in, p.Limits)
	return size, p.admit("cohort", size, err)
}

func flagPatterns(in *Filters, limits match.Limits) (int64, error) {
	total := int64(0)
	for _, sets := range [][]ConditionSet{in.Groups, in.SuperGroups} {
		for i := range sets {
			size, err := patterns(sets[i].Properties, limits)
			if total += size; err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

func cohortPatterns(in *Tree, limits match.Limits) (int64, error) {
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

func patterns(list []Property, limits match.Limits) (int64, error) {
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
