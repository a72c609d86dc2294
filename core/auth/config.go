package auth

import (
	"fmt"
	"time"
)

// Config holds the intervals and sizes of the key caches.
type Config struct {
	// RefreshInterval is the interval of checks for changes by other
	// processes, and the time for which an unknown key is remembered.
	RefreshInterval time.Duration `koanf:"refresh_interval"`
	// ReloadInterval is the interval of complete reloads, which find changes
	// made by hand in the database.
	ReloadInterval time.Duration `koanf:"reload_interval"`
	// PrincipalTTL is the lifetime of a cached personal key.
	PrincipalTTL time.Duration `koanf:"principal_ttl"`
	// MaxRemembered is the maximum number of personal keys, and of unknown
	// keys, in memory.
	MaxRemembered int `koanf:"max_remembered"`
}

// DefaultConfig returns settings that suit installations of any size.
func DefaultConfig() Config {
	return Config{
		RefreshInterval: 2 * time.Second,
		ReloadInterval:  time.Minute,
		PrincipalTTL:    5 * time.Second,
		MaxRemembered:   10_000,
	}
}

// Validate returns an error for an invalid setting.
func (c Config) Validate() error {
	for name, d := range map[string]time.Duration{
		"refresh_interval": c.RefreshInterval,
		"reload_interval":  c.ReloadInterval,
		"principal_ttl":    c.PrincipalTTL,
	} {
		if d <= 0 {
			return fmt.Errorf("auth.%s must be longer than nothing, not %v", name, d)
		}
	}
	if c.MaxRemembered < 1 {
		return fmt.Errorf("auth.max_remembered must be at least 1, not %d", c.MaxRemembered)
	}
	return nil
}
