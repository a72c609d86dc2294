package actions

import "github.com/guidonhq/guidon/core/actions/history"

// Config is what an operator can say about actions.
type Config struct {
	// History is how the past is counted.
	History history.Config `koanf:"history"`
}

// DefaultConfig suits a small server.
func DefaultConfig() Config { return Config{History: history.DefaultConfig()} }

// Validate reports the first option that makes no sense.
func (c Config) Validate() error { return c.History.Validate() }
