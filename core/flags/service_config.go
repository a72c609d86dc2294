package flags

import (
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/flags/rules"
)

// ManageConfig is what an operator can say about the management of flags.
type ManageConfig struct {
	// FiltersBytes is the largest filters text of a flag or cohort.
	FiltersBytes int `koanf:"filters_bytes"`
	// ListValues is the most values one condition may list.
	ListValues int `koanf:"list_values"`
	// CountBudget is how long an answer may take that has to look at every
	// stored person or group; past it, what was seen is projected.
	CountBudget time.Duration `koanf:"count_budget"`
	// CohortMembers is the most people a static cohort may list.
	CohortMembers int `koanf:"cohort_members"`
}

// DefaultManageConfig is half a mebibyte of filters, 1000 values a condition,
// two seconds to count, a million people in a list.
func DefaultManageConfig() ManageConfig {
	return ManageConfig{FiltersBytes: 512 << 10, ListValues: 1000, CountBudget: 2 * time.Second, CohortMembers: 1_000_000}
}

// Validate reports the first option that makes no sense.
func (c ManageConfig) Validate() error {
	switch {
	case c.FiltersBytes < 1<<10:
		return errors.New("flags: filters_bytes must be at least 1024")
	case c.ListValues < 1:
		return errors.New("flags: list_values must be at least 1")
	case c.CountBudget < 10*time.Millisecond:
		return errors.New("flags: count_budget must be at least 10ms")
	case c.CohortMembers < 1:
		return errors.New("flags: cohort_members must be at least 1")
	}
	return nil
}

// Limits are the bounds CheckFilters works with.
func (c ManageConfig) Limits() rules.Limits {
	return rules.Limits{FiltersBytes: c.FiltersBytes, ListValues: c.ListValues}
}
