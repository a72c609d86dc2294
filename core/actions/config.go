package actions

import "github.com/guidonhq/guidon/core/actions/history"

// Config are the settings of actions.
type Config struct {
	// History configures counting.
	History history.Config `koanf:"history"`
}

// DefaultConfig returns the defaults, for a small server.
func DefaultConfig() Config { return Config{History: history.DefaultConfig()} }

// Validate reports the first invalid setting.
func (c Config) Validate() error { return c.History.Validate() }
