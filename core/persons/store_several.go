package persons

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// Several returns those of the persons with these ids that there are, in any
// order.
func (s *Service) Several(ctx context.Context, projectID int64, ids []int64) ([]Person, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := s.store.people(ctx, s.store.selectPersons(ctx, projectID).Where("p.id IN (?)", bun.List(ids)))
	if err != nil {
		return nil, fmt.Errorf("read %d persons: %w", len(ids), err)
	}
	return found, nil
}
