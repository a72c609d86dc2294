package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/core/db"
)

// ReplaceLog makes id the log of the cluster in the database, in the transaction of ctx. It
// fails while nodes were seen lately, by the clock of the database, also if the cluster
// already has this log: its partitions may be others. A node that was killed counts until
// its row is old, because a new process under its name proves nothing about the former one.
// A node writes its row before it reads the log of the cluster, and this changes the log
// before it reads the rows: a node that starts meanwhile is seen here, or sees the new log.
func ReplaceLog(ctx context.Context, d *db.DB, id string) error {
	if !d.Postgres() {
		return nil
	}
	_, err := d.Write(ctx).NewRaw("INSERT INTO cluster_log (one, id) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET id = excluded.id", id).Exec(ctx)
	if err != nil {
		return err
	}
	seen, err := seenNodes(ctx, d)
	if err != nil || seen == "" {
		return err
	}
	return fmt.Errorf("servers of this database still use another log, or other partitions of this one (%s): stop them before this one starts with %s; one that was killed counts for 10 s: try again then",
		seen, id)
}

// CheckNoNodes fails while nodes were seen lately, by the clock of the database: those that
// were killed count for 10 seconds. action is what must wait for their end.
func CheckNoNodes(ctx context.Context, d *db.DB, action string) error {
	if !d.Postgres() {
		return nil
	}
	seen, err := seenNodes(ctx, d)
	if err != nil || seen == "" {
		return err
	}
	return fmt.Errorf("servers of this database run (%s): stop them before %s; one that was killed counts for 10 s: try again then", seen, action)
}

// seenNodes returns the nodes that were seen in the last 10 seconds, in words; "" for none.
func seenNodes(ctx context.Context, d *db.DB) (string, error) {
	var seen []string
	err := d.Write(ctx).NewRaw(`SELECT name || ', seen ' || greatest(0, floor(extract(epoch FROM clock_timestamp() - seen_at)))::int || ' s ago'
		FROM cluster_nodes WHERE seen_at > clock_timestamp() - interval '10 seconds' ORDER BY name`).Scan(ctx, &seen)
	if err != nil {
		return "", fmt.Errorf("look for running nodes: %w", err)
	}
	return strings.Join(seen, "; "), nil
}
