package events

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/sdk"
)

// Known reports for each event whether an event with its project and uuid is
// stored. It joins the transaction in ctx, or makes one.
func (s *Service) Known(ctx context.Context, batch []*sdk.Event) ([]bool, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	ids := make([]Identity, len(batch))
	for i, ev := range batch {
		id, err := uuid.Parse(ev.UUID)
		if err != nil {
			return nil, fmt.Errorf("look for event %q: %w", ev.UUID, err)
		}
		ids[i] = Identity{ev.ProjectID, id}
	}
	var known []bool
	err := s.db.Tx(ctx, func(ctx context.Context) (err error) {
		known, err = s.backend.Known(ctx, ids)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for events that are stored: %w", err)
	}
	return known, nil
}
