package settings_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/host/settings"
)

func TestValidateRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, says string
		change     func(*settings.Config)
	}{
		{"two of one name", `a second instance is named "p"`, func(c *settings.Config) { c.Instances = append(c.Instances, c.Instances[0]) }},
		{"no name", "name must be", func(c *settings.Config) { c.Instances[0].Name = "" }},
		{"name with a slash", "name must be", func(c *settings.Config) { c.Instances[0].Name = "a/b" }},
		{"nothing to use", "use is missing", func(c *settings.Config) { c.Instances[0].Use = "" }},
		{"unknown kind", `kind must be sink, notifier or matcher, not "sinc"`, func(c *settings.Config) { c.Instances[0].Kind = "sinc" }},
		{"unknown restart", "restart must be", func(c *settings.Config) { c.Instances[0].Restart = "maybe" }},
		{"negative timeout", "timeouts", func(c *settings.Config) { c.Instances[0].Timeouts.Call = -1 }},
		{"log level", "log_level", func(c *settings.Config) { c.LogLevel = "loud" }},
		{"log lines", "log_lines_per_second", func(c *settings.Config) { c.LogLinesPerSecond = 0 }},
		{"health interval", "health_interval", func(c *settings.Config) { c.HealthInterval = 0 }},
		{"restart curve", "restart:", func(c *settings.Config) { c.Restart.Max = 0 }},
	}
	for _, tt := range tests {
		c := settings.Default()
		c.Instances = []settings.Instance{{Name: "p", Use: "file", Kind: settings.KindSink}}
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := settings.Default().Validate(); err != nil {
		t.Error(err)
	}
}
