package events

import (
	"context"
	"slices"

	"github.com/uptrace/bun"
)

// eraseChunk is how many events one transaction deletes, so that the worker
// gets its turn in between.
const eraseChunk = 2000

func (s *Service) erase(ctx context.Context, projectID int64, distinctIDs []string) (total int64, err error) {
	for ids := range slices.Chunk(distinctIDs, 200) {
		for {
			n, err := s.eraseSome(ctx, projectID, ids)
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

// eraseSome deletes a chunk and says so in the same transaction. SQLite gives
// the number of a last row that is gone to the next one that comes: then
// nobody's "newer than" holds any more.
func (s *Service) eraseSome(ctx context.Context, projectID int64, ids []string) (n int64, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		last, err := s.last(ctx)
		if err != nil {
			return err
		}
		res, err := s.db.Write(ctx).NewRaw(`DELETE FROM events WHERE id IN (
			SELECT id FROM events WHERE project_id = ? AND distinct_id IN (?) LIMIT ?)`,
			projectID, bun.List(ids), eraseChunk).Exec(ctx)
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
