package app

import (
	_ "embed"
	"fmt"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web"
)

// Config holds every setting of the server, one section for each module. A YAML
// file sets them, then GUIDON_* variables of the environment: see Load.
type Config struct {
	// DataDir holds everything embedded: the database, the journal, the
	// sockets of plugins.
	DataDir       string               `koanf:"data_dir"`
	Log           LogConfig            `koanf:"log"`
	Traces        TracesConfig         `koanf:"traces"`
	HTTP          web.Config           `koanf:"http"`
	Database      db.Config            `koanf:"database"`
	Auth          auth.Config          `koanf:"auth"`
	Journal       journal.Config       `koanf:"journal"`
	Ingestion     ingestion.Config     `koanf:"ingestion"`
	Persons       persons.Config       `koanf:"persons"`
	Events        events.Config        `koanf:"events"`
	Definitions   definitions.Config   `koanf:"definitions"`
	Flags         flags.Config         `koanf:"flags"`
	Actions       actions.Config       `koanf:"actions"`
	Notifications notifications.Config `koanf:"notifications"`
	Operators     operators.Config     `koanf:"operators"`
	Plugins       settings.Config      `koanf:"plugins"`
}

// DefaultYAML is the whole default configuration with a comment on every
// setting. It loads as exactly DefaultConfig.
//
//go:embed default.yaml
var DefaultYAML string

// DefaultConfig returns a configuration without external services: everything
// embedded, under ./data, no plugin.
func DefaultConfig() Config {
	return Config{
		DataDir:       "./data",
		Log:           LogConfig{Level: "info", Format: "auto"},
		Traces:        TracesConfig{Sample: 1},
		HTTP:          web.DefaultConfig(),
		Database:      db.DefaultConfig(),
		Auth:          auth.DefaultConfig(),
		Journal:       journal.DefaultConfig(),
		Ingestion:     ingestion.DefaultConfig(),
		Persons:       persons.DefaultConfig(),
		Events:        events.DefaultConfig(),
		Definitions:   definitions.DefaultConfig(),
		Flags:         flags.DefaultConfig(),
		Actions:       actions.DefaultConfig(),
		Notifications: notifications.DefaultConfig(),
		Operators:     operators.DefaultConfig(),
		Plugins:       settings.Default(),
	}
}

// Validate returns an error that names the wrong setting, or nil.
func (c Config) Validate() error {
	if c.DataDir == "" {
		return fmt.Errorf("data_dir is empty: name the directory to keep everything in")
	}
	for _, section := range []struct {
		name   string
		config interface{ Validate() error }
	}{
		{"log", c.Log}, {"traces", c.Traces}, {"http", c.HTTP}, {"database", c.Database}, {"auth", c.Auth}, {"journal", c.Journal}, {"ingestion", c.Ingestion},
		{"persons", c.Persons}, {"events", c.Events}, {"definitions", c.Definitions}, {"flags", c.Flags}, {"actions", c.Actions},
		{"notifications", c.Notifications}, {"operators", c.Operators}, {"plugins", c.Plugins},
	} {
		if err := section.config.Validate(); err != nil {
			return fmt.Errorf("config %s: %w", section.name, err)
		}
	}
	return nil
}
