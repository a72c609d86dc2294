package search

import (
	"fmt"

	"github.com/guidonhq/guidon/core/fault"
)

// Limits bound the regular expressions of definitions, by their estimated
// compiled size: in instructions, about 40 bytes each in the memory of every
// server. Zero fields have the defaults.
type Limits struct {
	// Expression is the size of one regular expression, and its length in bytes.
	Expression int64 `koanf:"regex_size"`
	// Definition is the size of those of one flag, cohort or action together.
	Definition int64 `koanf:"definition_regex_size"`
	// Project is the size of those of all definitions of a project together.
	Project int64 `koanf:"project_regex_size"`
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{Expression: 10_000, Definition: 50_000, Project: 500_000}
}

// WithDefaults returns l with the default for each field that is 0.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ field, value *int64 }{
		{&l.Expression, &d.Expression}, {&l.Definition, &d.Definition}, {&l.Project, &d.Project},
	} {
		if *f.field == 0 {
			*f.field = *f.value
		}
	}
	return l
}

// Validate reports the first invalid limit, by the name of its setting.
func (l Limits) Validate() error {
	switch {
	case l.Expression < 1:
		return fmt.Errorf("regex_size must be at least 1, got %d", l.Expression)
	case l.Definition < l.Expression:
		return fmt.Errorf("definition_regex_size must be at least regex_size (%d), got %d", l.Expression, l.Definition)
	case l.Project < l.Definition:
		return fmt.Errorf("project_regex_size must be at least definition_regex_size (%d), got %d", l.Definition, l.Project)
	}
	return nil
}

// CodeTooLarge is the code of the faults about regular expressions over a limit.
const CodeTooLarge = "max_length"

// CheckExpression returns the size of a regular expression, and an Invalid fault
// for one that is larger than most. An invalid pattern has no size.
func CheckExpression(pattern string, most int64) (Program, error) {
	if n := int64(len(pattern)); n > most {
		return Program{Insts: n, Memory: n}, fault.Fieldf("value", CodeTooLarge,
			"The regular expression is too large: it has %d bytes, at most %d are allowed.", n, most)
	}
	size, err := Size(pattern)
	if err != nil {
		return Program{}, nil //nolint:nilerr // the compilation reports the error
	}
	if size.Memory > most {
		return size, fault.Fieldf("value", CodeTooLarge,
			"The regular expression is too large: it compiles to about %d instructions, at most %d are allowed. Repeat less.", size.Memory, most)
	}
	return size, nil
}

// CheckDefinition fails with an Invalid fault if the regular expressions of a
// definition are larger than Definition. kind is the word for it: flag.
func (l Limits) CheckDefinition(kind string, size int64) error {
	if size <= l.Definition {
		return nil
	}
	return fault.Newf(fault.Invalid, CodeTooLarge,
		"The regular expressions of this %s are too large: they compile to about %d instructions, at most %d are allowed. Repeat less, or split the %s.",
		kind, size, l.Definition, kind)
}

// CheckProject fails with an Invalid fault if the regular expressions of a
// project are larger than Project. others is the size of the other definitions.
func (l Limits) CheckProject(kind string, size, others int64) error {
	if size == 0 || size+others <= l.Project {
		return nil
	}
	return fault.Newf(fault.Invalid, CodeTooLarge,
		"The regular expressions of this project are too large: those of this %s compile to about %d instructions, those of others to %d, and at most %d are allowed. Repeat less, or delete definitions.",
		kind, size, others, l.Project)
}
