package operators

import (
	"fmt"
	"time"
)

// Config is how plugins are asked. How long a decide waits for them is
// flags.plugin_timeout.
type Config struct {
	// CompileTimeout is how long saving a filter waits for the plugin to check
	// its value.
	CompileTimeout time.Duration `koanf:"compile_timeout"`
	// ActionTimeout is how long matching events with actions waits for an
	// answer to many questions.
	ActionTimeout time.Duration `koanf:"action_timeout"`
	// MaxInFlight is how many calls to one plugin may be under way at once for
	// flags, and as many for actions; what comes on top is not answered.
	MaxInFlight int `koanf:"max_in_flight"`
	// CacheBytes is how much memory answers may take.
	CacheBytes int `koanf:"cache_bytes"`
}

// DefaultConfig waits a second and keeps 32 MiB of answers.
func DefaultConfig() Config {
	return Config{CompileTimeout: time.Second, ActionTimeout: time.Second, MaxInFlight: 32, CacheBytes: 32 << 20}
}

// Validate says what is wrong with c, naming the key, or returns nil.
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
