package deadletter

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Filter selects dead letters of a project. Zero fields do not filter.
type Filter struct {
	IDs        []int64
	Source     string
	Event      string
	EventUUID  string
	DistinctID string
	Code       string
	Search     string    // a substring of the event or the error, in any case
	After      time.Time // failed at that time or later
	Before     time.Time // failed earlier
	Waiting    *bool     // a replay is requested and not settled; nil: both
}

// Everything reports whether the filter selects all dead letters.
func (f Filter) Everything() bool {
	return len(f.IDs) == 0 && f.Source+f.Event+f.EventUUID+f.DistinctID+f.Code+f.Search == "" && f.After.IsZero() && f.Before.IsZero() && f.Waiting == nil
}

// where returns the conditions of the filter.
func (f Filter) where(projectID int64) func(*bun.SelectQuery) *bun.SelectQuery {
	return func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("project_id = ?", projectID)
		if len(f.IDs) > 0 {
			q = q.Where("id IN (?)", bun.List(f.IDs))
		}
		for _, c := range [...]struct{ condition, value string }{
			{"event_uuid = ?", f.EventUUID}, {"source = ?", f.Source}, {"event = ?", f.Event},
			{"distinct_id = ?", f.DistinctID}, {"code = ?", f.Code},
		} {
			if c.value != "" {
				q = q.Where(c.condition, c.value)
			}
		}
		if !f.After.IsZero() {
			q = q.Where("failed_at >= ?", db.At(f.After))
		}
		if !f.Before.IsZero() {
			q = q.Where("failed_at < ?", db.At(f.Before))
		}
		if f.Waiting != nil {
			q = q.Where("replay_waiting = ?", *f.Waiting)
		}
		if f.Search != "" {
			pattern := db.Contains(f.Search) // the database lowers column and pattern alike
			q = q.Where(`(LOWER(payload) LIKE LOWER(?0) ESCAPE '!' OR LOWER(message) LIKE LOWER(?0) ESCAPE '!' OR LOWER(code) LIKE LOWER(?0) ESCAPE '!')`, pattern)
		}
		return q
	}
}

// countBySource counts dead letters by source.
func (s *Store) countBySource(ctx context.Context, projectID int64, f Filter) (map[string]int, error) {
	var rows []struct {
		Source string
		N      int
	}
	err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("source").ColumnExpr("count(*) AS n").
		Apply(f.where(projectID)).Group("source").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	out := make(map[string]int, len(rows))
	for _, r := range rows {
		out[r.Source] = r.N
	}
	return out, nil
}

// ids lists the ids of dead letters after the given one, ascending.
func (s *Store) ids(ctx context.Context, projectID int64, f Filter, after int64, limit int) ([]int64, error) {
	ids := []int64{}
	err := s.db.Read(ctx).NewSelect().Model((*row)(nil)).Column("id").Apply(f.where(projectID)).
		Where("id > ?", after).Order("id").Limit(int64(limit)).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return ids, nil
}
