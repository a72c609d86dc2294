package db

import (
	"context"

	"github.com/guidonhq/guidon/migrations"
)

// Apply is Migrate with steps of the test's own.
func (d *DB) Apply(ctx context.Context, steps ...migrations.Step) error { return d.apply(ctx, steps) }

// Ping is ping.
var Ping = ping
