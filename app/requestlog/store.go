package requestlog

import (
	"context"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/unit"
)

// store reads what servers of a cluster have stored.
type store struct{ db *db.DB }

// usedLog returns the id of the log that the database belongs to, empty for none.
func (s store) usedLog(ctx context.Context) (id string, err error) {
	err = s.db.Read(ctx).NewRaw("SELECT coalesce((SELECT id FROM event_logs WHERE slot = 1), '')").Scan(ctx, &id)
	return id, err
}

// owners returns the owner of each partition that has one which is alive: by the clock
// of the database, its last beat is at most ten seconds old. No server decides by this.
func (s store) owners(ctx context.Context) (map[int]string, error) {
	var rows []struct{ Name, Node string }
	err := s.db.Read(ctx).NewRaw(`SELECT l.name, l.node FROM cluster_leases l JOIN cluster_nodes n ON n.id = l.node
		WHERE n.seen_at > now() - interval '10 seconds'`).Scan(ctx, &rows)
	out := map[int]string{}
	for _, row := range rows {
		if number, ok := strings.CutPrefix(row.Name, unit.Group+"/"); ok {
			if i, err := strconv.Atoi(number); err == nil {
				out[i] = row.Node
			}
		}
	}
	return out, err
}
