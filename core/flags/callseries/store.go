package callseries

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// lastCalledLag is how far the stored time of the last call may be behind the last event.
const lastCalledLag = 5 * time.Minute

// Flag is a flag whose calls are counted.
type Flag struct {
	ID         int64
	Key        string
	LastCalled time.Time // zero: never
}

// Store reads which flags there are.
type Store struct{ db *db.DB }

// NewStore returns the flags in d.
func NewStore(d *db.DB) *Store { return &Store{db: d} }

// flags returns the flags with the given ids, without those that are not there; without ids,
// the flags that were called since a time, the latest first, at most maxFlags.
func (s *Store) flags(ctx context.Context, projectID int64, ids []int64, since time.Time) ([]Flag, error) {
	var rows []struct {
		ID   int64
		Key  string
		Last int64
	}
	q := s.db.Read(ctx).NewSelect().TableExpr("feature_flags AS f").ColumnExpr("f.id, f.key, coalesce(c.last_called_at, 0) AS last").
		Join("LEFT JOIN feature_flag_calls AS c ON c.flag_id = f.id").
		Where("f.project_id = ?", projectID).Where("NOT f.deleted")
	if ids != nil {
		q = q.Where("f.id IN (?)", bun.List(ids))
	} else {
		q = q.Where("c.last_called_at >= ?", since.Add(-lastCalledLag).UnixMicro())
	}
	if err := q.OrderExpr("last DESC, f.id").Limit(maxFlags).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("list called flags: %w", err)
	}
	out := make([]Flag, len(rows))
	for i, r := range rows {
		out[i] = Flag{ID: r.ID, Key: r.Key}
		if r.Last > 0 {
			out[i].LastCalled = time.UnixMicro(r.Last)
		}
	}
	return out, nil
}
