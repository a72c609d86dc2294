package events

import (
	"context"
	"slices"

	"github.com/uptrace/bun"
)

// eraseChunk is how many events one transaction deletes, so that the worker can
// write in between.
const eraseChunk = 2000

func (s store) erase(ctx context.Context, projectID int64, distinctIDs []string) (total int64, err error) {
	for ids := range slices.Chunk(distinctIDs, 200) {
		for {
			n, err := s.eraseOneChunk(ctx, projectID, ids)
			if err != nil {
				return total, err
			}
			if total += n; n < eraseChunk {
				break
			}
		}
	}
	return total, nil
}

// eraseOneChunk deletes a chunk and records it in the same transaction. SQLite
// reuses the id of a deleted last row for the next event: in that case the
// erasure is recorded for all projects, because row ranges of each of them are
// invalid.
func (s store) eraseOneChunk(ctx context.Context, projectID int64, ids []string) (n int64, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		last, err := s.last(ctx)
		if err != nil {
			return err
		}
		chunk := s.db.Write(ctx).NewSelect().TableExpr("events").Column("id").
			Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(ids)).Limit(eraseChunk)
		res, err := s.db.Write(ctx).NewDelete().TableExpr("events").Where("id IN (?)", chunk).Exec(ctx)
		if err != nil {
			return err
		}
		if n, err = res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		now, err := s.last(ctx)
		if err != nil {
			return err
		}
		if now < last {
			projectID = allProjects
		}
		return s.recordChange(ctx, projectID, 1, 0)
	})
	return n, err
}
