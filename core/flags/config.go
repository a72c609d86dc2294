package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/match"
)

// Config configures the evaluation and the management of flags.
type Config struct {
	decide.Config `koanf:",squash"`
	ManageConfig  `koanf:",squash"`
}

// DefaultConfig joins the defaults of both parts.
func DefaultConfig() Config {
	return Config{Config: decide.DefaultConfig(), ManageConfig: DefaultManageConfig()}
}

// Validate reports the first invalid option.
func (c Config) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	return c.ManageConfig.Validate()
}

// ManageConfig configures the management of flags and cohorts.
type ManageConfig struct {
	// FiltersBytes is the largest filters text of a flag or cohort.
	FiltersBytes int `koanf:"filters_bytes"`
	// ListValues is the most values one condition may list.
	ListValues int `koanf:"list_values"`
	// CountBudget bounds the time of a count of stored persons or groups. After
	// it, the counted share is projected.
	CountBudget time.Duration `koanf:"count_budget"`
	// CohortMembers is the most distinct ids a static cohort may list.
	CohortMembers int `koanf:"cohort_members"`

	// EncryptionKey has the keys for encrypted payloads, 32 bytes in base64 each,
	// separated by commas or white space: the first one encrypts, all decrypt.
	// Empty is the file payload.key in the data directory, which is created.
	EncryptionKey string `koanf:"encryption_key"`

	// Patterns and Budget are those of the evaluation.
	Patterns match.Limits `koanf:"-"`
	Budget   int64        `koanf:"-"`
}

// with returns c with the bounds of the evaluation.
func (c ManageConfig) with(d decide.Config) ManageConfig {
	c.Patterns, c.Budget = d.Patterns, d.EvaluationBudget
	return c
}

// DefaultManageConfig allows 512 KiB of filters, 1000 values per condition, two
// seconds per count and a million distinct ids per static cohort.
func DefaultManageConfig() ManageConfig {
	return ManageConfig{FiltersBytes: 512 << 10, ListValues: 1000, CountBudget: 2 * time.Second, CohortMembers: 1_000_000}
}

// Validate reports the first invalid option.
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
	if _, err := sealed.ParseKeys(c.EncryptionKey); err != nil {
		return fmt.Errorf("flags: encryption_key: %w", err)
	}
	return nil
}

// Limits returns the bounds of rules.CheckFilters.
func (c ManageConfig) Limits() rules.Limits {
	return rules.Limits{FiltersBytes: c.FiltersBytes, ListValues: c.ListValues, Patterns: c.Patterns.WithDefaults()}
}
