package auth

import (
	"fmt"
	"time"
)

// Config says how far what memory holds may be behind the database.
type Config struct {
	// RefreshInterval is how often a process asks whether keys or projects
	// changed elsewhere, and how long a key that was not found is remembered
	// as unknown.
	RefreshInterval time.Duration `koanf:"refresh_interval"`
	// ReloadInterval is how often everything is read again even if no change
	// was announced, for the sake of changes made by hand in the database.
	ReloadInterval time.Duration `koanf:"reload_interval"`
	// PrincipalTTL is how long a personal key is answered from memory.
	PrincipalTTL time.Duration `koanf:"principal_ttl"`
	// MaxRemembered bounds the number of personal keys, and that of unknown
	// keys, in memory.
	MaxRemembered int `koanf:"max_remembered"`
}

// DefaultConfig suits any size.
func DefaultConfig() Config {
	return Config{
		RefreshInterval: 2 * time.Second,
		ReloadInterval:  time.Minute,
		PrincipalTTL:    5 * time.Second,
		MaxRemembered:   10_000,
	}
}

// Validate reports a setting that makes no sense.
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
