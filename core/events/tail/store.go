package tail

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
)

// store is the Source over an event store and its database.
type store struct {
	*events.Service
	*events.Shared
	db        *db.DB
	unordered bool // rows become visible out of order
}

// NewSource returns the Source of s, whose database is d.
func NewSource(s *events.Service, d *db.DB) Source {
	_, away := s.Status()
	return &store{Service: s, Shared: events.NewShared(d), db: d, unordered: d.Postgres() && !away}
}

func (s *store) CountBetween(ctx context.Context, projectID, after, through int64) (n int64, err error) {
	if _, away := s.Status(); away {
		counts, err := s.CountHistory(ctx, &events.HistoryQuery{ProjectID: projectID, After: after, Through: through, Any: []events.HistoryClause{{AnyEvent: true}}}, 24*time.Hour)
		for _, m := range counts.Events {
			n += m
		}
		return n, err
	}
	return n, s.between(ctx, projectID, after, through).ColumnExpr("count(*)").Scan(ctx, &n)
}

func (s *store) RowsBetween(ctx context.Context, projectID, after, through int64, limit int) (out []Row, err error) {
	if !s.unordered {
		return nil, nil
	}
	return out, s.between(ctx, projectID, after, through).ColumnExpr("e.id, e.uuid").OrderExpr("e.id DESC").Limit(int64(limit)).Scan(ctx, &out)
}

// between selects rows by their number. Without NOT INDEXED, SQLite would read all events
// of the project.
func (s *store) between(ctx context.Context, projectID, after, through int64) *bun.SelectQuery {
	table := "events AS e"
	if !s.db.Postgres() {
		table += " NOT INDEXED"
	}
	return s.db.Read(ctx).NewSelect().TableExpr(table).Where("e.project_id = ? AND e.id > ? AND e.id <= ?", projectID, after, through)
}
