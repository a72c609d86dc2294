package match

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// CompileOptions is what compiling depends on besides the definition.
type CompileOptions struct {
	// Location is where dates without an offset are; nil is UTC.
	Location *time.Location
	// Operators knows the operators of plugins; nil knows none.
	Operators match.Registry
	// Cohorts knows the cohorts of the project; nil takes every id for one.
	Cohorts Cohorts
	// Lenient is for definitions that are stored already. Nothing fails: a
	// step with something wrong in it never matches, the others do, and
	// Problem says what it is.
	Lenient bool
}

// Cohorts knows which cohorts there are.
type Cohorts interface {
	// HasCohort reports whether the project has a cohort with this id.
	HasCohort(id int64) bool
}

// Matcher is a compiled definition. It is immutable and safe for parallel
// use.
type Matcher struct {
	steps   []compiledStep
	source  []Step
	problem error
}

// Compile checks a definition and prepares it for matching. Errors are Invalid
// faults with the field in attr (steps__0__url_matching,
// steps__1__properties__0__value); of several, which are joined, fault.From
// finds the first. With opts.Lenient there is none.
func Compile(steps []Step, opts CompileOptions) (*Matcher, error) {
	if !opts.Lenient {
		if err := checkLimits(steps); err != nil {
			return nil, err
		}
	}
	m := &Matcher{steps: make([]compiledStep, len(steps)), source: slices.Clone(steps)}
	var problems []error
	for i := range steps {
		for _, err := range m.steps[i].compile(&steps[i], opts) {
			f := fault.From(err)
			problems = append(problems, f.At(attrOf(i, f.Attr)))
		}
	}
	m.problem = errors.Join(problems...)
	if m.problem != nil && !opts.Lenient {
		return nil, m.problem
	}
	return m, nil
}

func attrOf(step int, field string) string {
	if field == "" {
		return fmt.Sprintf("steps__%d", step)
	}
	return fmt.Sprintf("steps__%d__%s", step, field)
}

// Problem is what is wrong with a definition that was compiled leniently, or
// nil. It is an Invalid fault like those of Compile.
func (m *Matcher) Problem() error { return m.problem }

// Match tells whether the event fits any step. It is Unknown when that hangs
// on something nobody could tell: who the person is, a group, a cohort, the
// answer of a plugin; a step that fits without it, or cannot fit with it,
// decides. No steps match nothing. Matching allocates nothing for plain
// values and never fails.
func (m *Matcher) Match(s *EventView, env *match.Env) match.Result {
	result := match.False
	for i := range m.steps {
		switch m.steps[i].match(s, env) {
		case match.True:
			return match.True
		case match.Unknown:
			result = match.Unknown
		case match.False:
		}
	}
	return result
}

// NeverMatches reports that no event can match: there is no step, or something is
// wrong with each of them.
func (m *Matcher) NeverMatches() bool {
	for i := range m.steps {
		if m.steps[i].problem == nil {
			return false
		}
	}
	return true
}

// MaxFields is how many fields an explanation has at most.
func (m *Matcher) MaxFields() int {
	const fields = 7 // event, url, four of elements, and those together
	n := 0
	for i := range m.steps {
		n += fields + len(m.steps[i].filters)
	}
	return n
}
