package history

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/events"
)

// cutDays deletes the counts of the days that e concerns and makes the other counts valid at
// the new number of erasures. The new serial number makes a run that has read the old
// counts start again.
func (s *store) cutDays(ctx context.Context, e *events.Expired) error {
	rows, err := s.lockProject(ctx, e.ProjectID, e.Before.Erased)
	if err != nil || len(rows) == 0 {
		return err
	}
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ActionID
	}
	w := s.db.Write(ctx)
	if _, err := w.NewDelete().Model((*dayRow)(nil)).Where("action_id IN (?) AND day BETWEEN ? AND ?", bun.List(ids), dayOf(e.From), dayOf(e.To)).Exec(ctx); err != nil {
		return fmt.Errorf("delete counts of project %d: %w", e.ProjectID, err)
	}
	_, err = w.NewUpdate().Model((*countRow)(nil)).Set("erased = ?", e.After.Erased).Set("serial = serial + 1").
		Where("action_id IN (?)", bun.List(ids)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("correct counts of project %d: %w", e.ProjectID, err)
	}
	return nil
}
