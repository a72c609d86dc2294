package decide

import (
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// Config is how flags are decided for clients.
type Config struct {
	// DecideBytes is the maximum size of the JSON of a decide request. It may
	// have one value for each 16 bytes of it.
	DecideBytes int `koanf:"decide_bytes"`
	// LookupTimeout is how long a request waits for stored properties before
	// it leaves out the flags that need them.
	LookupTimeout time.Duration `koanf:"lookup_timeout"`
	// LookupPause is how long requests skip the database after half of at least 20
	// lookups failed within ten seconds. 0 never skips it.
	LookupPause time.Duration `koanf:"lookup_pause"`
	// KnownMaxAge is the age up to which properties that were read before are used
	// when a lookup fails. 0 uses none.
	KnownMaxAge time.Duration `koanf:"known_max_age"`
	// PluginTimeout is how long a request waits for operators of plugins, 2 to
	// 50 ms.
	PluginTimeout time.Duration `koanf:"plugin_timeout"`
	// PollInterval is how often changes by other processes are looked for.
	PollInterval time.Duration `koanf:"poll_interval"`
	// EnableCollectEverything tells browsers to capture clicks and page views
	// by themselves.
	EnableCollectEverything bool `koanf:"enable_collect_everything"`
	// MinimalFlagCalledEvents tells clients to send their events about called
	// flags with the properties about the flag only, for flags without an
	// experiment.
	MinimalFlagCalledEvents bool `koanf:"minimal_flag_called_events"`
	// Patterns bound the regular expressions of flags and cohorts.
	Patterns match.Limits `koanf:",squash"`
	// EvaluationBudget is the work of comparing texts that one request may
	// cause, in units of about 10 ns at worst; see match.Budget.
	EvaluationBudget int64 `koanf:"evaluation_budget"`
	// EvaluationSeries is the number of flags per project with a metric of their
	// evaluations; 0 turns it off.
	EvaluationSeries int `koanf:"evaluation_series"`
}

// Bounds of PluginTimeout: a longer wait is too slow for clients, and plugins
// cannot answer in a shorter one.
const (
	minPluginTimeout = 2 * time.Millisecond
	maxPluginTimeout = 50 * time.Millisecond
)

// maxEvaluationSeries bounds EvaluationSeries: each is a line of /metrics.
const maxEvaluationSeries = 10_000

// DefaultConfig accepts 1 MiB, and waits 300 ms for stores and 10 ms for plugins.
func DefaultConfig() Config {
	return Config{
		DecideBytes:             1 << 20,
		LookupTimeout:           300 * time.Millisecond,
		LookupPause:             time.Second,
		KnownMaxAge:             time.Hour,
		PluginTimeout:           10 * time.Millisecond,
		PollInterval:            500 * time.Millisecond,
		EnableCollectEverything: true,
		Patterns:                match.DefaultLimits(),
		EvaluationBudget:        match.DefaultBudget,
	}
}

// Validate returns an error that names the first invalid key, or nil.
func (c Config) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"lookup_timeout", c.LookupTimeout}, {"poll_interval", c.PollInterval},
	} {
		if d.value <= 0 {
			return fmt.Errorf("%s must be longer than 0, got %s", d.name, d.value)
		}
	}
	if c.PluginTimeout < minPluginTimeout || c.PluginTimeout > maxPluginTimeout {
		return fmt.Errorf("plugin_timeout must be %s to %s, got %s", minPluginTimeout, maxPluginTimeout, c.PluginTimeout)
	}
	if c.DecideBytes < 1<<10 {
		return fmt.Errorf("decide_bytes must be at least 1024, got %d", c.DecideBytes)
	}
	if c.LookupPause < 0 {
		return fmt.Errorf("lookup_pause must not be negative, got %s", c.LookupPause)
	}
	if c.KnownMaxAge < 0 {
		return fmt.Errorf("known_max_age must not be negative, got %s", c.KnownMaxAge)
	}
	if c.EvaluationBudget < 1 {
		return fmt.Errorf("evaluation_budget must be at least 1, got %d", c.EvaluationBudget)
	}
	if c.EvaluationSeries < 0 || c.EvaluationSeries > maxEvaluationSeries {
		return fmt.Errorf("evaluation_series must be 0 to %d, got %d", maxEvaluationSeries, c.EvaluationSeries)
	}
	return c.Patterns.Validate()
}
