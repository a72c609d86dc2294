package operators

import (
	"fmt"
	"time"
)

// Config limits the calls of matcher plugins. The timeout of a decide is
// flags.plugin_timeout.
type Config struct {
	// CompileTimeout limits the check of a value when a filter is saved.
	CompileTimeout time.Duration `koanf:"compile_timeout"`
	// ActionTimeout limits one call on behalf of actions.
	ActionTimeout time.Duration `koanf:"action_timeout"`
	// MaxInFlight is the number of concurrent calls of one plugin for flags, and
	// again for actions; further pairs are Unknown.
	MaxInFlight int `koanf:"max_in_flight"`
	// CacheBytes is the memory of cached results; 0 disables the cache.
	CacheBytes int `koanf:"cache_bytes"`
}

// DefaultConfig returns timeouts of a second and a cache of 32 MiB.
func DefaultConfig() Config {
	return Config{CompileTimeout: time.Second, ActionTimeout: time.Second, MaxInFlight: 32, CacheBytes: 32 << 20}
}

// Validate returns an error that names the invalid key, or nil.
func (c Config) Validate() error {
	switch {
	case c.CompileTimeout < 10*time.Millisecond || c.CompileTimeout > 30*time.Second:
		return fmt.Errorf("compile_timeout must be 10ms to 30s, got %s", c.CompileTimeout)
	case c.ActionTimeout < 10*time.Millisecond || c.ActionTimeout > time.Minute:
		return fmt.Errorf("action_timeout must be 10ms to 1m, got %s", c.ActionTimeout)
	case c.MaxInFlight < 1 || c.MaxInFlight > 10_000:
		return fmt.Errorf("max_in_flight must be 1 to 10000, got %d", c.MaxInFlight)
	case c.CacheBytes < 0:
		return fmt.Errorf("cache_bytes must not be negative, got %d", c.CacheBytes)
	}
	return nil
}
