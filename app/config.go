package app

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/app/configcheck"
	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/changes"
	"github.com/guidonhq/guidon/core/clients"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/console"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/email"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/geoip"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/roles"
	"github.com/guidonhq/guidon/core/signin"
	"github.com/guidonhq/guidon/core/standby"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web"
)

// Config holds every setting of the server, one section for each module. A YAML
// file sets them, then GUIDON_* variables of the environment: see Load.
type Config struct {
	// DataDir holds everything embedded: the database, the journal, the
	// sockets of plugins.
	DataDir string `koanf:"data_dir"`
	// Roles are what the server does of core/roles; empty: everything.
	Roles         []string             `koanf:"roles"`
	Log           LogConfig            `koanf:"log"`
	Traces        tracing.Config       `koanf:"traces"`
	HTTP          web.Config           `koanf:"http"`
	Database      db.Config            `koanf:"database"`
	Standby       standby.Config       `koanf:"standby"`
	Cluster       cluster.Config       `koanf:"cluster"`
	Auth          auth.Config          `koanf:"auth"`
	SignIn        signin.Config        `koanf:"sign_in"`
	Email         email.Config         `koanf:"email"`
	Activity      activity.Config      `koanf:"activity"`
	Journal       requestlog.Config    `koanf:"journal"`
	Backup        backup.Config        `koanf:"backup"`
	Ingestion     ingestion.Config     `koanf:"ingestion"`
	GeoIP         geoip.Config         `koanf:"geoip"`
	Persons       persons.Config       `koanf:"persons"`
	Events        events.Config        `koanf:"events"`
	Definitions   definitions.Config   `koanf:"definitions"`
	Flags         flags.Config         `koanf:"flags"`
	Changes       changes.Config       `koanf:"changes"`
	Actions       actions.Config       `koanf:"actions"`
	Notifications notifications.Config `koanf:"notifications"`
	Operators     operators.Config     `koanf:"operators"`
	Plugins       settings.Config      `koanf:"plugins"`
	Clients       clients.Config       `koanf:"clients"`
	Console       console.Config       `koanf:"console"`

	// Secrets replaces the resolved references of the settings in text; nil
	// replaces nothing.
	Secrets *secret.Redactor `koanf:"-"`
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
		Roles:         []string{},
		Log:           LogConfig{Level: "info", Format: "auto"},
		Traces:        tracing.DefaultConfig(),
		HTTP:          web.DefaultConfig(),
		Database:      db.DefaultConfig(),
		Standby:       standby.DefaultConfig(),
		Cluster:       cluster.DefaultConfig(),
		Auth:          auth.DefaultConfig(),
		SignIn:        signin.DefaultConfig(),
		Email:         email.DefaultConfig(),
		Activity:      activity.DefaultConfig(),
		Journal:       requestlog.DefaultConfig(),
		Backup:        backup.DefaultConfig(),
		Ingestion:     ingestion.DefaultConfig(),
		GeoIP:         geoip.DefaultConfig(),
		Persons:       persons.DefaultConfig(),
		Events:        events.DefaultConfig(),
		Definitions:   definitions.DefaultConfig(),
		Flags:         flags.DefaultConfig(),
		Changes:       changes.DefaultConfig(),
		Actions:       actions.DefaultConfig(),
		Notifications: notifications.DefaultConfig(),
		Operators:     operators.DefaultConfig(),
		Plugins:       settings.Default(),
		Clients:       clients.DefaultConfig(),
		Console:       console.DefaultConfig(),
	}
}

// Redact replaces the resolved secrets of the configuration in text.
func (c Config) Redact(text string) string { return c.Secrets.Redact(text) }

// Validate returns an error for each section with an invalid value, joined, that
// names the setting; or nil. It opens nothing and resolves no name.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("data_dir is empty: name the directory to keep everything in"))
	}
	for _, section := range []struct {
		name   string
		config interface{ Validate() error }
	}{
		{"log", c.Log}, {"traces", c.Traces}, {"http", c.HTTP}, {"database", c.Database}, {"standby", c.Standby}, {"cluster", c.Cluster}, {"auth", c.Auth}, {"sign_in", c.SignIn}, {"email", c.Email}, {"activity", c.Activity}, {"journal", c.Journal}, {"backup", c.Backup}, {"ingestion", c.Ingestion}, {"geoip", c.GeoIP},
		{"persons", c.Persons}, {"events", c.Events}, {"definitions", c.Definitions}, {"flags", c.Flags}, {"changes", c.Changes}, {"actions", c.Actions},
		{"notifications", c.Notifications}, {"operators", c.Operators}, {"plugins", c.Plugins}, {"clients", c.Clients}, {"console", c.Console},
	} {
		errs = append(errs, inSection(section.name, section.config.Validate()))
	}
	errs = append(errs, c.Cluster.CheckDatabase(c.Database.URL), roles.Check(c.Roles, cluster.IsPostgres(c.Database.URL), c.Journal.Shared()))
	errs = append(errs, c.Journal.CheckCluster(c.Cluster.Enabled, c.Database.URL))
	if c.Events.URL != "" && !cluster.IsPostgres(c.Database.URL) {
		errs = append(errs, clickhouse.ErrNeedsPostgres)
	}
	errs = append(errs, c.Email.CheckLinks(c.HTTP.ConsoleSite(), c.Console.Enabled), checkDeliveries(c.Plugins.Instances))
	errs = append(errs, configcheck.Address("http.address", c.HTTP.Address), configcheck.Address("http.console_address", c.HTTP.ConsoleAddress))
	if !strings.HasPrefix(c.HTTP.AdminAddress, "unix:") {
		errs = append(errs, configcheck.Address("http.admin_address", c.HTTP.AdminAddress))
	}
	return errors.Join(errs...)
}

// checkDeliveries reports invalid delivery sections of sinks. References to secrets are
// resolved later: they may appear while the server runs.
func checkDeliveries(instances []settings.Instance) error {
	var errs []error
	hasMatcher := slices.ContainsFunc(instances, func(c settings.Instance) bool { return c.Kind == settings.KindMatcher })
	for i, c := range instances {
		if operator := pluginOperator(c.Delivery); operator != "" && !hasMatcher {
			errs = append(errs, fmt.Errorf("plugins.instances[%d] (%s): delivery.properties: the operator %s needs an instance of the kind matcher, and the config has none", i, c.Name, operator))
		}
		if err := delivery.ValidateSection(c.Delivery); err != nil && c.Kind == settings.KindSink {
			errs = append(errs, fmt.Errorf("plugins.instances[%d] (%s): %s", i, c.Name, strings.ReplaceAll(err.Error(), "\n", "; ")))
		}
	}
	return errors.Join(errs...)
}

// pluginOperator returns an operator of a matcher plugin in the property filters of a
// sink, or "". Names of built-in operators have no slash.
func pluginOperator(c settings.Delivery) string {
	for _, property := range c.Properties {
		if operator, _ := property["operator"].(string); strings.Contains(operator, "/") {
			return operator
		}
	}
	return ""
}

// inSection starts each line of err with the name of the setting: its section,
// which some packages name themselves, and the key.
func inSection(name string, err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(strings.TrimPrefix(line, name+": "), name+".")
		lines[i] = name + "." + line
	}
	return errors.New(strings.Join(lines, "\n"))
}
