package match

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// CompileOptions is what the compilation depends on besides the definition.
type CompileOptions struct {
	// Location is the zone of dates without an offset; nil is UTC.
	Location *time.Location
	// Operators are the operators of plugins; nil has none.
	Operators match.Registry
	// Cohorts are the cohorts of the project; nil accepts every id.
	Cohorts Cohorts
	// Lenient is for stored definitions. Compile does not fail: an invalid step
	// never matches, the others do, and Problem returns the reason. Of a
	// definition that is too large nothing is compiled, and no step matches.
	Lenient bool
}

// Cohorts are the cohorts of a project.
type Cohorts interface {
	// HasCohort reports whether the project has a cohort with this id.
	HasCohort(id int64) bool
}

// Matcher is a compiled definition. It is immutable and safe for concurrent
// use.
type Matcher struct {
	steps    []compiledStep
	source   []Step
	problem  error
	patterns int64
}

// Compile validates a definition and prepares it for matching. Errors are
// Invalid faults with the field in attr (steps__0__url_matching,
// steps__1__properties__0__value). Several are joined; fault.From finds the
// first. With opts.Lenient it never fails.
func Compile(steps []Step, opts CompileOptions) (*Matcher, error) {
	m := &Matcher{steps: make([]compiledStep, len(steps)), source: slices.Clone(steps)}
	var err error
	if m.patterns, err = checkLimits(steps); err != nil {
		if !opts.Lenient {
			return nil, err
		}
		for i := range m.steps {
			m.steps[i].problem = err
		}
		m.problem = err
		return m, nil
	}
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

// Patterns returns the size of the compiled regular expressions, in
// instructions.
func (m *Matcher) Patterns() int64 { return m.patterns }

// Problem returns why a leniently compiled definition is invalid, or nil: an
// Invalid fault like those of Compile.
func (m *Matcher) Problem() error { return m.problem }

// Match reports whether the event fits any step. It is Unknown if that depends
// on a fact that is not known (the person, a group, a cohort, the answer of a
// plugin); a step that fits or fails regardless of the fact decides. A
// definition without steps matches nothing. Matching allocates nothing for
// plain values and never fails.
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

// NeverMatches reports that no event can match: the action has no step, or each step
// is invalid.
func (m *Matcher) NeverMatches() bool {
	for i := range m.steps {
		if m.steps[i].problem == nil {
			return false
		}
	}
	return true
}

// MaxFields is the maximum number of fields of an explanation.
func (m *Matcher) MaxFields() int {
	const fields = 7 // event, url, four element conditions, and the combined one
	n := 0
	for i := range m.steps {
		n += fields + len(m.steps[i].filters)
	}
	return n
}
