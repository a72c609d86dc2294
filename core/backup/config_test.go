package backup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/backup"
)

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*backup.Config)
		want   string // "" is valid
	}{
		"default":           {func(*backup.Config) {}, ""},
		"interval":          {func(c *backup.Config) { c.Every, c.To = time.Hour, "/backups" }, ""},
		"times":             {func(c *backup.Config) { c.At, c.To = []string{"02:30", "14:30"}, "s3://backups/eu/" }, ""},
		"no place":          {func(c *backup.Config) { c.Every = time.Hour }, "to is empty"},
		"no place at times": {func(c *backup.Config) { c.At = []string{"02:30"} }, "to is empty"},
		"short interval":    {func(c *backup.Config) { c.Every, c.To = time.Second, "/backups" }, "at least 1m"},
		"negative interval": {func(c *backup.Config) { c.Every = -time.Hour }, "at least 1m"},
		"both":              {func(c *backup.Config) { c.Every, c.At, c.To = time.Hour, []string{"02:30"}, "/b" }, "exclude each other"},
		"bad time":          {func(c *backup.Config) { c.At, c.To = []string{"2:3x"}, "/b" }, "not a time of the day"},
		"negative keep":     {func(c *backup.Config) { c.KeepWeekly = -1 }, "must not be negative"},
		"negative timeout":  {func(c *backup.Config) { c.Timeout = -1 }, "timeout must not be negative"},
		"negative rate":     {func(c *backup.Config) { c.RateBytes = -1 }, "rate_bytes must not be negative"},
		"another scheme":    {func(c *backup.Config) { c.To = "ftp://host/" }, "neither a path nor s3://"},
		"no bucket":         {func(c *backup.Config) { c.To = "s3:///x" }, "no bucket"},
		"half a key":        {func(c *backup.Config) { c.To, c.S3.AccessKey = "s3://b/", "me" }, "belong together"},
		"bad endpoint":      {func(c *backup.Config) { c.To, c.S3.Endpoint = "s3://b/", "host:9000" }, "s3.endpoint"},
		"bad recipient":     {func(c *backup.Config) { c.Recipients = []string{"age1x"} }, "not an age public key"},
	} {
		config := backup.DefaultConfig()
		c.change(&config)
		err := config.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
