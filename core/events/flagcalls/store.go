package flagcalls

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/db"
)

// store counts in the database.
type store struct{ db *db.DB }

// FlagCalls implements Backend.
func (s store) FlagCalls(ctx context.Context, q *Query, fn Visit) error {
	for i, key := range q.Keys {
		var rows []Count
		err := s.db.Read(ctx).NewSelect().TableExpr("events AS e").
			ColumnExpr("(e.timestamp - ?) / ? AS interval", q.From.UnixMicro(), q.Width.Microseconds()).
			ColumnExpr("coalesce(e.flag_response, '') AS response").ColumnExpr("count(*) AS calls").
			Where("e.project_id = ?", q.ProjectID).Where("e.flag_key = ?", key).Where("e.event = ?", Event).
			Where("e.timestamp >= ?", q.From.UnixMicro()).Where("e.timestamp < ?", q.To.UnixMicro()).
			GroupExpr("1, 2").Limit(MaxCounts+1).Scan(ctx, &rows)
		if err != nil {
			if i == 0 && ctx.Err() != nil { // it had the whole time
				fn(key, Result{})
			}
			return fmt.Errorf("count calls of flag %q: %w", key, err)
		}
		if len(rows) > MaxCounts {
			fn(key, Result{})
		} else {
			fn(key, Result{Counted: true, Counts: rows})
		}
	}
	return nil
}
