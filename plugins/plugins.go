// Package plugins lists the plugins that come with the server. Each is a folder
// that knows nothing but the SDK, and runs as a process of the server's own
// executable: `guidon plugin exec <name>`. All plugins are of this kind.
package plugins

import (
	"maps"
	"slices"

	"github.com/guidonhq/guidon/plugins/matcher/cel"
	"github.com/guidonhq/guidon/plugins/matcher/cidr"
	"github.com/guidonhq/guidon/plugins/matcher/geo"
	"github.com/guidonhq/guidon/plugins/matcher/schedule"
	"github.com/guidonhq/guidon/plugins/notifier/discord"
	"github.com/guidonhq/guidon/plugins/notifier/email"
	"github.com/guidonhq/guidon/plugins/notifier/msteams"
	"github.com/guidonhq/guidon/plugins/notifier/slack"
	webhooknotifier "github.com/guidonhq/guidon/plugins/notifier/webhook"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse"
	"github.com/guidonhq/guidon/plugins/sink/file"
	"github.com/guidonhq/guidon/plugins/sink/kafka"
	"github.com/guidonhq/guidon/plugins/sink/nats"
	"github.com/guidonhq/guidon/plugins/sink/parquet"
	"github.com/guidonhq/guidon/plugins/sink/postgres"
	"github.com/guidonhq/guidon/plugins/sink/stdout"
	webhooksink "github.com/guidonhq/guidon/plugins/sink/webhook"
	"github.com/guidonhq/guidon/sdk"
)

// bundled are the plugins by name; a name is that of its Plugin.
var bundled = map[string]func() sdk.Plugin{
	"cel":        cel.Plugin,
	"cidr":       cidr.Plugin,
	"clickhouse": clickhouse.Plugin,
	"discord":    discord.Plugin,
	"email":      email.Plugin,
	"file":       file.Plugin,
	"geo":        geo.Plugin,
	"kafka":      kafka.Plugin,
	"msteams":    msteams.Plugin,
	"nats":       nats.Plugin,
	"parquet":    parquet.Plugin,
	"postgres":   postgres.Plugin,
	"schedule":   schedule.Plugin,
	"slack":      slack.Plugin,
	"stdout":     stdout.Plugin,
	"webhook":    webhook,
}

// webhook is one plugin that is of two kinds.
func webhook() sdk.Plugin {
	p := webhooksink.Plugin()
	p.Notifier = webhooknotifier.Plugin().Notifier
	p.Summary = "Posts batches of events, or notifications, to an HTTP endpoint, signed."
	return p
}

// Names returns the names of the bundled plugins, sorted.
func Names() []string { return slices.Sorted(maps.Keys(bundled)) }

// Find returns the bundled plugin of that name, to be given to sdk.Serve.
func Find(name string) (sdk.Plugin, bool) {
	plugin, ok := bundled[name]
	if !ok {
		return sdk.Plugin{}, false
	}
	return plugin(), true
}

// Operators returns what the bundled matcher of that name offers, or nil.
func Operators(name string) []sdk.Operator {
	p, ok := Find(name)
	if !ok || p.Matcher == nil {
		return nil
	}
	return p.Matcher().Operators()
}
