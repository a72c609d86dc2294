package app

import (
	"context"
	"slices"

	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/standby"
)

// foundation opens the journal, which locks the data directory, before the
// database, which is migrated when it opens.
var foundation = fx.Module("foundation", fx.Invoke(
	func(o *opened, j journal.Journal) {
		o.add(func() error { return j.Close(context.Background()) })
	},
	func(o *opened, d *db.DB) { o.add(d.Close) },
	func(*standby.Service) {}, // reads the snapshot before definitions are compiled
))

// opened closes what the constructors of modules have opened when a later one
// fails. Once they have all succeeded, the lifecycle of fx closes it.
type opened struct{ closers []func() error }

func (o *opened) add(closer func() error) { o.closers = append(o.closers, closer) }

func (o *opened) close() {
	for _, c := range slices.Backward(o.closers) {
		_ = c() // the error of the start matters more
	}
}
