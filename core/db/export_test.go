package db

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/migrations"
)

// Apply is Migrate with steps of the test's own.
func (d *DB) Apply(ctx context.Context, steps ...migrations.Step) error { return d.apply(ctx, steps) }

// Ping is ping.
var Ping = ping

// KeptStatements returns the texts of the prepared statements that the writing
// connection keeps.
func (d *DB) KeptStatements(ctx context.Context) (texts []string, err error) {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return texts, conn.Raw(func(c any) error {
		for _, s := range c.(*watchedConn).statements.idle {
			texts = append(texts, s.query)
		}
		return nil
	})
}

// MaxStatements is maxStatements.
const MaxStatements = maxStatements

// Register registers the metrics of d.
func Register(d *DB, reg prometheus.Registerer) error { return d.register(reg) }
