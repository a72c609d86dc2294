package events

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"
)

// seenChunk bounds the parameters of one statement.
const seenChunk = 500

// LastSeen returns the newest timestamp of each distinct id. The index of distinct
// ids answers it without reading an event.
func (s store) LastSeen(ctx context.Context, projectID int64, distinctIDs []string) (map[string]time.Time, error) {
	out := make(map[string]time.Time, len(distinctIDs))
	for ids := range slices.Chunk(distinctIDs, seenChunk) {
		var rows []struct {
			DistinctID string
			Last       int64
		}
		err := s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("distinct_id, max(timestamp) AS last").
			Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(ids)).GroupExpr("distinct_id").Scan(ctx, &rows)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.DistinctID] = time.UnixMicro(r.Last).UTC()
		}
	}
	return out, nil
}
