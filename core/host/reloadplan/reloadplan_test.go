package reloadplan_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/core/host/reloadplan"
	"github.com/guidonhq/guidon/core/host/settings"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	sink := func(name string, change ...func(*settings.Instance)) settings.Instance {
		c := settings.Instance{Name: name, Kind: "sink", Use: "file", Config: map[string]any{"path": "x", "password": "hunter2"}}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	never := func() bool { return false }
	before := []reloadplan.Current{
		{Settings: sink("same"), SecretsChanged: never},
		{Settings: sink("removed"), SecretsChanged: never},
		{Settings: sink("config"), SecretsChanged: never},
		{Settings: sink("delivery"), SecretsChanged: never},
		{Settings: sink("secret"), SecretsChanged: func() bool { return true }},
		{Settings: sink("waits"), Waits: "it is misconfigured", SecretsChanged: never},
		{Settings: sink("broken"), SecretsChanged: never},
		{Settings: sink("kind"), SecretsChanged: never},
	}
	after := []settings.Instance{
		sink("same"),
		sink("new"),
		sink("config", func(c *settings.Instance) { c.Config = map[string]any{"path": "y", "more": 1}; c.Isolated = true }),
		sink("delivery", func(c *settings.Instance) { c.Delivery.Sample = 0.5; c.Required = true }),
		sink("secret"),
		sink("waits"),
		sink("broken", func(c *settings.Instance) { c.Use = "flie" }),
		sink("new-broken", func(c *settings.Instance) { c.Use = "flie" }),
		sink("kind", func(c *settings.Instance) { c.Kind = "notifier" }),
	}
	check := func(c settings.Instance) error {
		if c.Use == "flie" {
			return errors.New("no bundled plugin is named \"flie\"")
		}
		return nil
	}
	want := map[string]string{
		"same":       "unchanged []",
		"new":        "start []",
		"config":     "restart [config.more config.password config.path isolated]",
		"delivery":   "reconfigure [delivery required]",
		"secret":     "restart []a referenced secret or the file of the plugin has changed",
		"waits":      "restart []it is misconfigured; it tries again",
		"broken":     "refused [use]no bundled plugin is named \"flie\"; the former settings stay in use if it runs",
		"new-broken": "refused []no bundled plugin is named \"flie\"",
		"kind":       "restart [kind]it becomes another instance: the old one stops, the new one starts",
		"removed":    "stop []it is not in the config",
	}
	got := reloadplan.Compare(before, after, check)
	if len(got) != len(want) || got[len(got)-1].Name != "removed" {
		t.Errorf("got %v", got)
	}
	for _, c := range got {
		if text := fmt.Sprint(c.Action, " ", c.Settings, c.Reason); text != want[c.Name] {
			t.Errorf("%s: got %s, want %s", c.Name, text, want[c.Name])
		}
	}
}
