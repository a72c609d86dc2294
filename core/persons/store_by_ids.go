package persons

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// ByIDs returns the persons with these ids that exist, in any order.
func (s *Service) ByIDs(ctx context.Context, projectID int64, ids []int64) ([]Person, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	// The plus sign keeps SQLite from scanning all persons of the project.
	q := s.db.Read(ctx).NewSelect().TableExpr("persons AS p").ColumnExpr(personColumns).
		Where("p.id IN (?)", bun.List(ids)).Where("+p.project_id = ?", projectID)
	found, err := s.store.people(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read %d persons: %w", len(ids), err)
	}
	return found, nil
}
