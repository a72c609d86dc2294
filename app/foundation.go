package app

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/roles"
	"github.com/guidonhq/guidon/core/standby"
)

// foundation opens the journal, which locks the data directory, before the
// database, which is migrated when it opens. A log that servers share comes after the
// database, which has its cursors.
var foundation = fx.Module("foundation", fx.Invoke(
	func(o *opened, f *requestlog.Files) {
		o.add(func() error { return f.Close(context.Background()) })
	},
	func(o *opened, d *db.DB) { o.add(d.Close) },
	func(o *opened, l *requestlog.Log) { o.add(func() error { return l.Close(context.Background()) }) },
	func(*standby.Service) {}, // reads the snapshot before definitions are compiled
))

// clusterNode describes this node. The connections to the database carry its id, so
// that other nodes can end them when it is dead. A node that only decides reads the
// database, and uses no log.
func clusterNode(cfg *Config, opts Options) (cluster.Info, roles.Set) {
	has, _ := roles.New(cfg.Roles) // Validate has reported errors
	if has.DecideOnly() {
		cfg.Database.ReadOnly, cfg.Journal.URL = true, ""
	}
	info := cluster.Info{
		ID: uuid.NewString(), Name: cfg.Cluster.Name, Version: opts.Version, Address: cfg.HTTP.Address,
		Roles: has.Names(), Observer: has.DecideOnly(),
	}
	if cfg.Cluster.Enabled {
		cfg.Database.SessionName = info.ID
	}
	return info, has
}

// countQuota counts events on a server that takes them in and does not process them.
func countQuota(lc fx.Lifecycle, has roles.Set, m *capture.Meter) {
	if has.Has(roles.Capture) && !has.Has(roles.Process) {
		lc.Append(fx.StartStopHook(m.Start, m.Stop))
	}
}

// opened closes what the constructors of modules have opened when a later one
// fails. Once they have all succeeded, the lifecycle of fx closes it.
type opened struct{ closers []func() error }

func (o *opened) add(closer func() error) { o.closers = append(o.closers, closer) }

func (o *opened) close() {
	for _, c := range slices.Backward(o.closers) {
		_ = c() // the error of the start matters more
	}
}
