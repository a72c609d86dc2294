package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/core/db"
)

// ReplaceLog makes id the log of the cluster in the database, in the transaction of ctx. It
// fails while nodes that were seen lately, by the clock of the database, use another log.
// A node writes its row before it reads the log of the cluster, and this changes the log
// before it reads the rows: a node that starts meanwhile is seen here, or sees the new log.
func ReplaceLog(ctx context.Context, d *db.DB, id string) error {
	if !d.Postgres() {
		return nil
	}
	changed, err := d.Write(ctx).NewRaw("INSERT INTO cluster_log AS l (one, id) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET id = excluded.id WHERE l.id <> excluded.id", id).Exec(ctx)
	if err != nil {
		return err
	}
	if n, err := changed.RowsAffected(); err != nil || n == 0 {
		return err
	}
	var names []string
	err = d.Write(ctx).NewRaw("SELECT name FROM cluster_nodes WHERE seen_at > clock_timestamp() - interval '10 seconds' ORDER BY name").Scan(ctx, &names)
	if err != nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("servers of this database still use another log (%s): stop them before this one starts with %s", strings.Join(names, ", "), id)
}
